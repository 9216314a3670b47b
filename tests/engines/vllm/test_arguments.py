"""From KV settings to vLLM's words: pure, without vLLM."""

from __future__ import annotations

import sys
import tempfile
import uuid
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from niah.backends.vllm_server.options import VllmServerOptions
from niah.backends.vllm_server.process import server_environment
from niah.engines import gpu as _nvml
from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.vllm.arguments import (
    VllmEngineOptions,
    as_flags,
    as_keywords,
    cache_dtype_name,
    check_windows,
    engine_settings,
    stored_as,
)
from niah.errors import BackendUnavailable
from niah.kv.config import AllTokens, KVConfig, Placement, Window
from niah.kv.formats import Grouped, TokenHead
from niah.kv.grammar import parse_one
from niah.kv.memory.totals import kv_bytes
from niah.kv.vllm_formats import Nvfp4, TurboQuant
from niah.models.known import builtin_shape

TQ3 = (("kv-cache-dtype", "turboquant_3bit_nc"), ("max-num-partial-prefills", "2"))


def settings(kv: KVConfig, model: str = "smollm2", *, on_cpu: bool = False, **options: Any) -> dict[str, Any]:
    stand_in: Any = SimpleNamespace
    info = ModelInfo(model, "/models/m", "r", stand_in(), stand_in(), builtin_shape(model), 8192)
    request = SessionRequest(kv, 2048, reuse=True, is_complete=lambda *_: False)
    return engine_settings(VllmEngineOptions(**options), info, request, on_cpu=on_cpu)


@pytest.mark.parametrize(
    ("kv", "on_cpu", "word"),
    [
        (parse_one("bf16"), False, "bfloat16"),
        (parse_one("bf16"), True, "auto"),
        (parse_one("fp8"), True, "fp8_e4m3"),
        (parse_one("int8"), False, "int8_per_token_head"),
        (parse_one("int4"), False, "int4_per_token_head"),
        (KVConfig("k8v4", TokenHead("int8"), Grouped("int4", 32)), False, "turboquant_k8v4"),
        (KVConfig("nvfp4", Nvfp4("nvfp4"), Nvfp4("nvfp4")), False, "nvfp4"),
        (
            KVConfig("tq", TurboQuant("int3", "keys"), TurboQuant("int3", "values"), native=TQ3),
            False,
            "turboquant_3bit_nc",
        ),
    ],
)
def test_words(kv: KVConfig, on_cpu: bool, word: str) -> None:
    assert cache_dtype_name(kv, on_cpu=on_cpu) == word
    assert settings(kv, on_cpu=on_cpu)["kv_cache_dtype"] == word


def test_what_is_left_to_vllm_is_not_said() -> None:
    said = settings(parse_one("bf16"))
    assert not {"block_size", "hf_overrides", "kv_cache_memory_bytes", "tensor_parallel_size"} & set(said)
    assert "kv_cache_memory_bytes" in settings(parse_one("bf16"), on_cpu=True)


def test_a_window_is_put_on_every_layer() -> None:
    overrides = settings(KVConfig("window", tokens=Window(512)))["hf_overrides"]
    assert overrides["sliding_window"] == 512
    assert overrides["layer_types"] == ["sliding_attention"] * 30


@pytest.mark.parametrize(
    ("kv", "model", "options", "expected"),
    [
        # three KV heads are replicated before the tokens can be split
        (KVConfig("ring", placement=Placement(context_parallel=2)), "smollm2", {}, (6, 2, None)),
        (KVConfig("ring", placement=Placement(context_parallel=2)), "deepseek-v3", {}, (2, 2, None)),
        (
            KVConfig("ring", placement=Placement(context_parallel=2)),
            "deepseek-v3",
            {"context_parallel": "prefill"},
            (None, None, 2),
        ),
        (KVConfig("tp", placement=Placement(tensor_parallel=4)), "smollm2", {}, (4, None, None)),
    ],
)
def test_ranks(kv: KVConfig, model: str, options: dict[str, Any], expected: tuple[int | None, ...]) -> None:
    said = settings(kv, model, **options)
    names = ("tensor_parallel_size", "decode_context_parallel_size", "prefill_context_parallel_size")
    assert tuple(said.get(name) for name in names) == expected


def test_flags_and_keywords_say_the_same() -> None:
    kv = KVConfig(
        "all",
        TokenHead("int8"),
        TokenHead("int8"),
        placement=Placement(offload="cpu"),
        skip_layers=(0, -1),
        native=TQ3[1:],
    )
    said = settings(kv, hybrid_manager=False)
    flags = as_flags(said)
    assert flags[flags.index("--kv-cache-dtype-skip-layers") :][:3] == ["--kv-cache-dtype-skip-layers", "0", "29"]
    assert flags[flags.index("--kv-offloading-backend") + 1] == "native"
    assert flags[flags.index("--attention-backend") + 1] == "TRITON_ATTN"
    assert flags[flags.index("--max-num-partial-prefills") + 1] == "2"
    assert "--disable-hybrid-kv-cache-manager" in flags
    assert "--enforce-eager" in flags
    words = as_keywords(said)
    assert words["attention_config"] == {"backend": "TRITON_ATTN"}
    assert words["kv_cache_dtype_skip_layers"] == ["0", "29"]
    off = as_flags({"enable_prefix_caching": False, "hf_overrides": {"sliding_window": 8}})
    assert off == ["--no-enable-prefix-caching", "--hf-overrides", '{"sliding_window": 8}']


def test_the_formula_counts_what_vllm_stores() -> None:
    """Bytes per token and KV head at head size 128 as in vLLM's own layouts: int4 136, TurboQuant k8v4 196."""
    shape = builtin_shape("llama-3.1-8b")
    per_head = len(shape.layers) * 8
    assert kv_bytes(shape, stored_as(parse_one("int4"), shape), 1) == 136 * per_head
    k8v4 = KVConfig("k8v4", TokenHead("int8"), Grouped("int4", 32))
    stored = stored_as(k8v4, shape)
    assert stored.skip_layers == (0, 1, 30, 31)
    assert kv_bytes(shape, stored, 1) == 8 * (28 * 196 + 4 * 512)
    assert stored_as(parse_one("int8"), shape) == parse_one("int8")


def test_a_window_that_did_not_take_effect() -> None:
    window = KVConfig("window(512)", tokens=Window(512))
    check_windows(window, [512, 512], "m")
    check_windows(replace(window, tokens=AllTokens()), [None], "m")
    with pytest.raises(BackendUnavailable, match=r"full attention.*does not follow the override"):
        check_windows(window, [512, None], "m")


class _Error(Exception):
    pass


def _no_sensor(_card: object) -> int:
    raise _Error


def test_readings_of_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(
        NVMLError=_Error,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetMemoryInfo=lambda _: SimpleNamespace(used=1 << 30),
        nvmlDeviceGetUtilizationRates=lambda _: SimpleNamespace(gpu=50),
        nvmlDeviceGetPowerUsage=_no_sensor,
        nvmlDeviceGetTemperature=lambda *_: 40,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    reader = _nvml.CardReader()
    assert reader.has_card
    readings = {"gpu_memory_used_bytes": float(1 << 30), "gpu_utilization": 0.5, "gpu_temperature_c": 40.0}
    assert reader.read() == readings


def test_no_driver_is_no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver() -> None:
        raise _Error

    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(NVMLError=_Error, nvmlInit=no_driver))
    assert not _nvml.CardReader().has_card
    assert _nvml.CardReader().read() == {}


@pytest.mark.parametrize(("folder", "moved"), [("/tmp/short", False), (f"/tmp/{'a' * 70}", True)])
def test_sockets_of_a_server_fit_their_folder(monkeypatch: pytest.MonkeyPatch, folder: str, moved: bool) -> None:
    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.delenv("VLLM_RPC_BASE_PATH", raising=False)
    chosen = server_environment(VllmServerOptions()).get("VLLM_RPC_BASE_PATH", folder)
    assert (chosen != folder) == moved
    # <folder>/<uuid> must be no longer than the name of a socket may be
    assert len(f"{chosen}/{uuid.uuid4()}") <= 107
    monkeypatch.setenv("VLLM_RPC_BASE_PATH", "/mine")
    assert server_environment(VllmServerOptions())["VLLM_RPC_BASE_PATH"] == "/mine"
