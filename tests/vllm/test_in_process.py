"""The vllm backend on a real engine: exact tokens, blocks counted, prefixes reused, refusals, the canary."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path

import pytest

import niah as package
from niah.kv.grammar import parse_one
from niah.kv.memory.totals import kv_bytes
from niah.models.shape import ModelShape
from tests.helpers.command import Command
from tests.helpers.known import known

BLOCK = 128
SMOLLM2_BF16_TOKEN = 30 * 3 * 2 * 64 * 2


@pytest.fixture(scope="module")
def bf16_run(tmp_path_factory: pytest.TempPathFactory) -> package.Run:
    out = tmp_path_factory.mktemp("bf16")
    return package.run(backend="vllm", kv="bf16", lengths="512", depths=5, trials=1, out=str(out))


def test_blocks_and_bytes_add_up(bf16_run: package.Run) -> None:
    assert len(bf16_run.rows) == 5
    for row in bf16_run.rows:
        assert row.outcome == "answered"
        assert known(row.prompt_tokens) + known(row.answer_budget) == row.length == 512
        memory = row.kv_memory
        assert memory.source == "measured_blocks"
        assert known(memory.logical_bytes) == known(memory.formula_bytes) == known(memory.tokens) * SMOLLM2_BF16_TOKEN
        blocks = known(memory.allocated_bytes) // (BLOCK * SMOLLM2_BF16_TOKEN)
        assert memory.allocated_bytes == blocks * BLOCK * SMOLLM2_BF16_TOKEN
        assert ceil(known(memory.tokens) / BLOCK) <= blocks <= ceil((known(memory.tokens) + 1) / BLOCK)
        assert known(memory.logical_bytes) <= known(memory.allocated_bytes) <= known(memory.pool_bytes)
        assert known(row.logprob) < 0


def test_one_context_is_processed_once(bf16_run: package.Run) -> None:
    cached = sorted(known(row.cached_tokens) for row in bf16_run.rows)
    assert cached[0] == 0
    assert all(tokens >= 3 * BLOCK for tokens in cached[1:])


def test_settings_in_force_are_read_back(bf16_run: package.Run) -> None:
    effective = bf16_run.setting("bf16")["effective"]
    assert effective["kv.k_dtype"] == "bf16"
    assert effective["compute_dtype"] == "bfloat16"
    assert effective["kv.block_size"] == BLOCK
    assert effective["kv.page_bytes"] == BLOCK * SMOLLM2_BF16_TOKEN
    assert effective["attention"] == "CPU_ATTN"
    assert effective["prefix_caching"] is True
    assert effective["scales"] == "none"


def test_paging_is_compared_with_a_reservation(bf16_run: package.Run, niah: Command) -> None:
    said = niah("show", bf16_run.path, "--json")
    waste = said.document()["paging"][0]
    rows = bf16_run.rows
    needed = sum(known(row.kv_memory.logical_bytes) for row in rows)
    assert waste["cells"] == len(rows)
    assert waste["blocks"] == pytest.approx(1 - needed / sum(known(row.kv_memory.allocated_bytes) for row in rows))
    # the engine's longest length is one token more than the run's
    assert waste["contiguous"] == pytest.approx(1 - needed / (len(rows) * 513 * SMOLLM2_BF16_TOKEN))


def test_the_pool_is_sampled(bf16_run: package.Run) -> None:
    lines = (bf16_run.path / "metrics.jsonl").read_text().splitlines()
    readings = [json.loads(line) for line in lines]
    assert all(0 <= reading["kv_cache_usage_perc"] <= 1 for reading in readings)
    assert max(reading["num_requests_running"] for reading in readings) >= 1


def test_positions_are_stretched_for_all_settings(tmp_path: Path) -> None:
    run = package.run(
        backend={"name": "vllm", "yarn_factor": 2.0},
        kv="bf16",
        lengths="384",
        depths="0,100",
        trials=1,
        out=str(tmp_path),
    )
    assert [row.outcome for row in run.rows] == ["answered"] * 2
    assert run.setting("bf16")["effective"]["rope"] == "yarn, factor 2"


def test_same_prompts_as_transformers(bf16_run: package.Run, tmp_path: Path) -> None:
    other = package.run(backend="transformers", kv="bf16", lengths="512", depths=5, trials=1, out=str(tmp_path))
    theirs = {row.pair_id: row for row in other.rows}
    assert {row.pair_id for row in bf16_run.rows} == set(theirs)
    for row in bf16_run.rows:
        assert row.prompt_sha256 == theirs[row.pair_id].prompt_sha256
    same = sum(row.answer == theirs[row.pair_id].answer for row in bf16_run.rows)
    assert same >= 4
    differences = [abs(known(row.logprob) - known(theirs[row.pair_id].logprob)) for row in bf16_run.rows]
    # one engine computes in bf16, the other in what the processor has: their rounding differs
    assert sum(differences) / len(differences) < 0.3


def test_windows_hold_bounded_blocks(tmp_path: Path) -> None:
    run = package.run(
        backend={"name": "vllm", "dtype": "fp32", "max_num_batched_tokens": 256},
        model="gemma3-270m",
        kv="auto",
        reference=False,
        lengths="768,1536",
        depths="0,100",
        trials=1,
        out=str(tmp_path),
    )
    by_length = {row.length: row for row in run.rows}
    assert all(row.outcome == "answered" for row in run.rows)
    short, long = by_length[768].kv_memory, by_length[1536].kv_memory
    full_page, window_page = (layers * BLOCK * 2 * 256 * 4 for layers in (3, 15))
    # 15 window layers stay at their window and the chunk in work; only the 3 full layers grow with the length
    window_blocks = ceil((512 - 1 + 256) / BLOCK) + 1
    for memory in (short, long):
        full = ceil(known(memory.tokens) / BLOCK) * full_page
        assert full < known(memory.allocated_bytes) <= full + full_page + window_blocks * window_page
    assert known(long.allocated_bytes) - known(short.allocated_bytes) <= 7 * full_page
    shape = ModelShape.from_folder(_folder("gemma3-270m"))
    assert known(long.logical_bytes) == 2 * kv_bytes(shape, parse_one("bf16"), known(long.tokens))
    # its file asks for it; the engine is sent ids, so it adds none of its own
    assert run.setting(run.rows[0].kv)["effective"]["prompt.start"] == "<bos>"


def _folder(alias: str) -> Path:
    from niah.engines.checkpoint.gguf import converted_folder

    return converted_folder(alias)


def test_a_window_is_put_on_a_model_that_has_none(tmp_path: Path) -> None:
    run = package.run(
        backend={"name": "vllm", "max_num_batched_tokens": 256},
        kv="window(128)",
        reference=False,
        lengths="768",
        depths="0,100",
        trials=1,
        out=str(tmp_path),
    )
    assert [row.outcome for row in run.rows] == ["answered"] * 2
    assert run.setting(run.rows[0].kv)["effective"]["kv.windows"] == "128"
    for row in run.rows:
        memory = row.kv_memory
        assert memory.logical_bytes == memory.formula_bytes == 128 * SMOLLM2_BF16_TOKEN
        assert known(memory.allocated_bytes) <= (ceil((128 - 1 + 256) / BLOCK) + 1) * BLOCK * SMOLLM2_BF16_TOKEN
    # what lies before the window is gone, what lies in it is not
    assert {row.depth: row.correct for row in run.rows}[0.0] is False


def test_reuse_off_processes_every_prompt(tmp_path: Path) -> None:
    run = package.run(
        backend={"name": "vllm", "dtype": "fp32"},
        kv="auto",
        reference=False,
        reuse="off",
        lengths="384",
        depths="0,100",
        trials=1,
        out=str(tmp_path),
    )
    assert [row.cached_tokens for row in run.rows] == [0, 0]
    assert run.setting("auto")["effective"]["prefix_caching"] is False


def test_int8_is_refused_on_a_cpu(niah: Command) -> None:
    said = niah("run", "--backend", "vllm", "--kv-dtype", "int8", "-l", "512")
    assert said.code == 2
    assert "--kv-dtype fp8" in said.err
    assert "--backend transformers" in said.err
    assert len([line for line in said.err.splitlines() if line.startswith("niah: ")]) == 1


def test_garbage_is_caught_by_the_canary(niah: Command, tmp_path: Path, has_avx512: bool) -> None:
    """vLLM on a CPU with AVX-512 takes int8_per_token_head without a word and answers with garbage."""
    if not has_avx512:
        pytest.skip("without AVX-512 or AMX vLLM's CPU build refuses an 8-bit cache itself, so there is no garbage")
    said = niah(
        *("run", "--backend", "vllm", "--kv", "int8", "--set", "backend.skip_checks=true", "-l", "384", "-d", "0,100"),
        *("-n", "1", "--out", tmp_path, "--json"),
    )
    assert said.code == 3
    assert {s["kv"]: s["broken"] for s in said.document()["settings"]} == {"bf16": False, "int8": True}
    assert package.load(tmp_path).setting("int8")["canary"]["state"] == "broken"


def test_what_the_engine_refuses_is_one_sentence(niah: Command, tmp_path: Path, has_avx512: bool) -> None:
    if has_avx512:
        pytest.skip("this processor has AVX-512 or AMX, so the engine takes the setting")
    said = niah(
        *("run", "--backend", "vllm", "--kv", "int8", "--no-reference", "--set", "backend.skip_checks=true"),
        *("-l", "384", "-d", "2", "-n", "1", "--out", tmp_path),
    )
    assert said.code == 4
    assert "vLLM cannot start with kv 'int8'" in said.err
    assert "Traceback" not in said.err


def test_a_pool_that_is_too_small(niah: Command, tmp_path: Path) -> None:
    said = niah(
        *("run", "--backend", "vllm", "--kv", "bf16", "--set", "backend.pool_bytes=12000000", "-l", "2k", "-d", "2"),
        *("-n", "1", "--out", tmp_path),
    )
    assert said.code in (2, 4)
    assert "Traceback" not in said.err
    assert "pool" in said.err or "KV cache" in said.err


def test_fp8_is_half_the_bytes(has_avx512: bool, tmp_path: Path) -> None:
    if not has_avx512:
        pytest.skip("an fp8 cache on vLLM's CPU build needs AVX-512 or AMX, which this processor does not have")
    run = package.run(backend="vllm", kv="fp8", lengths="512", depths=3, trials=1, out=str(tmp_path))
    per_token = {row.kv: known(row.kv_memory.logical_bytes) / known(row.kv_memory.tokens) for row in run.rows}
    assert per_token["fp8_e4m3"] * 2 == per_token["bf16"]


def test_fp8_without_avx512_is_refused(niah: Command, has_avx512: bool) -> None:
    if has_avx512:
        pytest.skip("this processor has AVX-512 or AMX, so fp8 runs")
    said = niah("run", "--backend", "vllm", "--kv-dtype", "fp8", "-l", "512")
    assert said.code == 2
    assert "AVX-512 or AMX" in said.err
