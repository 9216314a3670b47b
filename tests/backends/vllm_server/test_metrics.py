"""What /metrics says, read by our own parser; which readings belong to one request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from niah.backends.vllm_server.metrics import CacheInfo, parse_samples, read_cache, read_load
from niah.backends.vllm_server.open import cache_mismatch
from niah.backends.vllm_server.sampler import Sampler
from niah.errors import StoreError
from niah.kv.grammar import parse_one
from niah.models.shape import LayerShape, ModelShape

SMOLLM2 = ModelShape("smollm2", (LayerShape("full", 3, 64, 64),) * 30, heads=9, hidden_size=576)
HYBRID = ModelShape("hybrid", (LayerShape("full", 1, 64, 64), LayerShape("window", 1, 64, 64, window=8)), 4, 256)
FP32_PAGE = 128 * 30 * 3 * 128 * 4
BF16 = parse_one("bf16")


def load_text(*, usage: float, running: int, preemptions: int = 0, engine: int = 0) -> str:
    labels = f'{{engine="{engine}",model_name="m"}}'
    return "\n".join(
        (
            "# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.",
            "# TYPE vllm:kv_cache_usage_perc gauge",
            f"vllm:kv_cache_usage_perc{labels} {usage}",
            f"vllm:num_requests_running{labels} {running}.0",
            f"vllm:num_preemptions_total{labels} {preemptions}.0",
            f"vllm:num_preemptions_created{labels} 1.7e+09",
            "",
        )
    )


def test_a_line_with_everything() -> None:
    text = r'x:a_total{path="C:\\tmp {a,b} = \"1\"\nend",n="2",} 1.5e3 1700000000000 # {trace="f"} 0.1'
    (sample,) = parse_samples(text)
    assert sample.name == "x:a_total"
    assert sample.labels == {"path": 'C:\\tmp {a,b} = "1"\nend', "n": "2"}
    assert sample.value == 1500.0


@pytest.mark.parametrize("line", ["", "# TYPE a gauge", "a", "a{", 'a{b="c"', "a{b=c} 1", "a b", "{} 1", "<html>"])
def test_what_is_no_sample_is_left_out(line: str) -> None:
    assert parse_samples(f"{line}\ngood 2\n")[-1].value == 2.0
    assert len(parse_samples(f"{line}\ngood 2\n")) == 1


def test_special_values() -> None:
    values = [sample.value for sample in parse_samples("a +Inf\nb -Inf\nc{} NaN\nd -0.5")]
    assert values[:2] == [float("inf"), float("-inf")]
    assert values[2] != values[2]
    assert values[3] == -0.5


def test_engines_are_added_and_their_usage_averaged() -> None:
    text = load_text(usage=0.25, running=1, preemptions=2) + load_text(usage=0.75, running=2, engine=1)
    reading = read_load(parse_samples(text))
    assert reading.engines == 2
    assert reading.values == {"kv_cache_usage_perc": 0.5, "num_requests_running": 3.0, "num_preemptions": 2.0}


def test_names_of_older_servers() -> None:
    text = "vllm:gpu_cache_usage_perc 0.5\nvllm:gpu_prefix_cache_hits_total 3\nvllm:gpu_prefix_cache_queries_total 9\n"
    reading = read_load(parse_samples(text))
    assert reading.values == {"kv_cache_usage_perc": 0.5, "prefix_cache_hits": 3.0, "prefix_cache_queries": 9.0}


def test_what_cannot_be_read_is_absent_and_not_zero() -> None:
    reading = read_load(parse_samples("vllm:kv_cache_usage_perc NaN\nother 1\n"))
    assert reading.values == {}
    assert reading.engines == 0


def cache(**changes: object) -> CacheInfo:
    known = {"dtype": "auto", "blocks": 45, "block_size": 128, "asked_pool_bytes": 268435456}
    return CacheInfo(**(known | changes))  # type: ignore[arg-type]


def test_cache_settings_from_labels() -> None:
    text = (
        'vllm:cache_config_info{block_size="128",cache_dtype="fp8",enable_prefix_caching="False",engine="0",'
        'kv_cache_memory_bytes="None",num_gpu_blocks="45",kv_cache_dtype_skip_layers="[]"} 1.0\n'
    )
    info = read_cache(parse_samples(text))
    assert info is not None
    assert (info.dtype, info.blocks, info.block_size, info.asked_pool_bytes) == ("fp8", 45, 128, None)
    assert info.prefix_caching is False
    assert read_cache(parse_samples("vllm:other 1\n")) is None


def test_pages_are_those_that_cut_the_pool_exactly() -> None:
    info = cache()
    assert info.element_bytes(SMOLLM2) == 4
    assert info.page_bytes(SMOLLM2, BF16) == FP32_PAGE
    assert info.pool_bytes(SMOLLM2, BF16) == 45 * FP32_PAGE < 268435456
    assert info.held_bytes(3 / 44, FP32_PAGE) == 3 * FP32_PAGE
    assert cache(blocks=91).element_bytes(SMOLLM2) == 2
    assert cache(blocks=46).element_bytes(SMOLLM2) is None


def test_pages_where_layers_differ_or_the_pool_is_not_told() -> None:
    assert cache(blocks=100, asked_pool_bytes=1_000_050).page_bytes(HYBRID, BF16) == 10_000
    assert cache(asked_pool_bytes=None).page_bytes(HYBRID, BF16) is None
    assert cache(asked_pool_bytes=None).page_bytes(SMOLLM2, BF16) == FP32_PAGE // 2
    assert cache(asked_pool_bytes=None).page_bytes(SMOLLM2, parse_one("auto")) is None
    assert cache(blocks=None, block_size=None, asked_pool_bytes=None).pool_bytes(SMOLLM2, BF16) is None


@pytest.mark.parametrize(
    ("kv", "info", "said"),
    [
        ("auto", cache(dtype="fp8"), None),
        ("bf16", cache(blocks=91), None),
        ("bf16", cache(dtype="bfloat16", asked_pool_bytes=None), None),
        ("bf16", None, None),
        ("bf16", cache(), "4 bytes an element instead of 2"),
        ("bf16", cache(dtype="fp8"), "type 'fp8'"),
        ("fp8", cache(dtype="fp8", blocks=182), None),
        ("fp8", cache(dtype="fp8_e4m3", blocks=91), "2 bytes an element instead of 1"),
        ("fp8", cache(), "type 'auto'"),
        ("fp8", None, "publishes no metrics"),
        ("int8", cache(dtype="int8_per_token_head"), None),
        ("int4", cache(dtype="int8_per_token_head"), "type 'int8_per_token_head'"),
    ],
)
def test_a_server_with_another_cache_is_seen(kv: str, info: CacheInfo | None, said: str | None) -> None:
    found = cache_mismatch(info, parse_one(kv), SMOLLM2)
    assert found is None if said is None else found is not None and said in found


class Metrics:
    """A server whose /metrics a test sets."""

    def __init__(self) -> None:
        self.text = load_text(usage=0.0, running=0)
        self.reads = 0

    async def read(self) -> str:
        self.reads += 1
        return self.text

    async def settle(self) -> None:
        seen = self.reads
        while self.reads < seen + 2:
            await asyncio.sleep(0.002)


def test_only_a_request_that_ran_alone_gets_a_peak() -> None:
    metrics = Metrics()
    kept: list[Any] = []

    async def run() -> None:
        sampler = Sampler(metrics.read, 0.01, kept.append)
        await sampler.start()
        with sampler.watch() as alone:
            await metrics.settle()
            for usage in (0.25, 0.5, 0.125):
                metrics.text = load_text(usage=usage, running=1)
                await metrics.settle()
            metrics.text = load_text(usage=0.9, running=2)  # somebody else's request
            await metrics.settle()
        metrics.text = load_text(usage=0.3, running=1)
        with sampler.watch() as first, sampler.watch() as second:
            await metrics.settle()
        with sampler.watch() as hit:
            metrics.text = load_text(usage=0.3, running=1, preemptions=1)
            await metrics.settle()
        idle = metrics.reads
        await asyncio.sleep(0.05)
        assert metrics.reads <= idle + 1, "nothing is read while nothing is in flight"
        await sampler.close()
        assert alone.peak_usage == 0.5
        assert not alone.preempted
        assert first.peak_usage is None
        assert second.peak_usage is None
        assert hit.preempted
        assert sampler.preemptions == 1

    asyncio.run(run())
    assert kept[-1]["num_preemptions"] == 1.0
    assert {reading["kv_cache_usage_perc"] for reading in kept} >= {0.25, 0.5, 0.9}


def test_a_poke_reads_at_once() -> None:
    metrics = Metrics()

    async def run() -> None:
        sampler = Sampler(metrics.read, 60.0, lambda _: None)
        await sampler.start()
        with sampler.watch() as watch:
            await asyncio.sleep(0.01)
            metrics.text = load_text(usage=0.5, running=1)
            sampler.poke()
            await asyncio.sleep(0.01)
        await sampler.close()
        assert watch.peak_usage == 0.5

    asyncio.run(run())


def test_a_full_disk_is_not_swallowed() -> None:
    metrics = Metrics()

    def full(_: Mapping[str, float]) -> None:
        raise StoreError("the disk is full")

    async def run() -> None:
        sampler = Sampler(metrics.read, 0.01, full)
        await sampler.start()
        with sampler.watch():
            await asyncio.sleep(0.05)
        with pytest.raises(StoreError, match="disk is full"):
            await sampler.close()

    asyncio.run(run())
