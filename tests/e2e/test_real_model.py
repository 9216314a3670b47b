"""SmolLM2-135M and Gemma-3-270M on this CPU: the commands a user types, with rows that add up exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import niah as package
from niah.api import plan_run
from niah.config import build_config
from niah.kv.grammar import parse_one
from niah.kv.memory.totals import kv_bytes
from niah.models.shape import ModelShape
from tests.helpers.command import Command
from tests.helpers.known import known

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def smollm2_run(smollm2_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> package.Run:
    out = tmp_path_factory.mktemp("smollm2")
    return package.run(kv="bf16,int8,int4", lengths="512", depths=5, trials=2, out=str(out))


def test_every_row_is_answered_and_adds_up(smollm2_run: package.Run) -> None:
    assert len(smollm2_run.rows) == 30
    for row in smollm2_run.rows:
        assert row.outcome == "answered"
        assert known(row.prompt_tokens) + known(row.answer_budget) == row.length == 512
        assert row.engine_prompt_tokens == row.prompt_tokens
        memory = row.kv_memory
        assert memory.source == "measured_tensors"
        assert memory.logical_bytes == memory.formula_bytes
        assert known(memory.tokens) == known(row.prompt_tokens) + known(row.output_tokens) - 1
        assert known(memory.allocated_bytes) >= known(memory.logical_bytes)
        assert known(row.logprob) < 0


def test_a_first_token_comes_after_the_whole_prefill_and_before_the_last(smollm2_run: package.Run) -> None:
    """Prefill and total are shares of a context's five questions; the first token is not."""
    for row in smollm2_run.rows:
        timing = row.timing
        assert 5 * timing.prefill_s < timing.first_token_s < 5 * timing.total_s


def test_int8_is_exactly_136_of_256_bytes(smollm2_run: package.Run) -> None:
    per_token = {row.kv: known(row.kv_memory.logical_bytes) / known(row.kv_memory.tokens) for row in smollm2_run.rows}
    assert per_token["int8"] * 256 == per_token["bf16"] * 136
    assert per_token["bf16"] == 30 * 3 * 2 * 64 * 2
    assert per_token["int4"] == 30 * 3 * 2 * (64 // 2 + 2 * 4)


def test_the_reference_finds_most_and_int8_is_close(smollm2_run: package.Run) -> None:
    """Five needles in 512 tokens: a model of this size finds most, and 8 bits change its log-probabilities little."""
    frame = smollm2_run.frame()
    accuracy = frame.groupby("kv").correct.mean()
    assert accuracy["bf16"] >= 0.5
    wide = frame.pivot_table(index="pair_id", columns="kv", values="logprob")
    int8, int4 = (wide[kv] - wide["bf16"] for kv in ("int8", "int4"))
    assert int8.abs().mean() < 0.3
    assert int4.abs().mean() > int8.abs().mean()


def test_settings_in_force_are_read_back(smollm2_run: package.Run) -> None:
    effective = {kv: smollm2_run.setting(kv)["effective"] for kv in smollm2_run.kvs()}
    assert effective["bf16"]["kv.k_storage"] == "bfloat16"
    assert effective["int8"]["kv.k_storage"] == "int8+float32"
    assert effective["int4"]["kv.v_storage"] == "uint8+float16+float16"
    assert effective["int4"]["kv.k_dtype"] == "int4"
    assert all(smollm2_run.setting(kv)["canary"]["state"] != "broken" for kv in smollm2_run.kvs())


def test_the_prompt_is_built_again_from_the_row(niah: Command, smollm2_run: package.Run) -> None:
    row = smollm2_run.rows[3]
    document = niah("cell", smollm2_run.path, row.cell_id, "--prompt", "--json").document()
    assert document["matches"] is True
    assert document["prompt"].count(row.expected[0]) == 1
    assert document["prompt"].startswith("<|im_start|>")
    assert "▶" in niah("cell", smollm2_run.path, row.cell_id).out


def rounding(run: package.Run) -> float:
    """How far two ways of computing the same may be apart, in nats over an answer: bf16 has eight bits of mantissa."""
    return 0.02 if run.setting("bf16")["effective"]["compute_dtype"] == "float32" else 0.25


def test_reuse_off_and_forks_give_the_same_answers(smollm2_run: package.Run, tmp_path: Path) -> None:
    """Packed questions behind one cache, a fork of it per question, and cold prompts: one result."""
    grid: dict[str, Any] = {"lengths": "512", "depths": 5, "trials": 1, "kv": "bf16", "reference": False}
    packed = {row.pair_id: row for row in smollm2_run.rows if row.kv == "bf16" and row.trial == 0}
    ways: tuple[dict[str, Any], ...] = ({"reuse": "off"}, {"backend": {"name": "transformers", "pack": False}})
    for number, more in enumerate(ways):
        run = package.run(**grid, **more, out=str(tmp_path / str(number)))
        assert {row.pair_id for row in run.rows} == set(packed)
        for row in run.rows:
            assert row.logprob == pytest.approx(packed[row.pair_id].logprob, abs=rounding(smollm2_run))
        same = sum(row.answer == packed[row.pair_id].answer for row in run.rows)
        assert same >= 4, "at most one tie may fall the other way"
        if "reuse" in more:
            assert {row.cached_tokens for row in run.rows} == {0}


def test_a_single_needle_keeps_the_cache_before_it(tmp_path: Path, smollm2_folder: Path) -> None:
    run = package.run(
        model=str(smollm2_folder),
        task="single",
        kv="int8",
        reference=False,
        lengths="512",
        depths=5,
        trials=1,
        out=str(tmp_path),
    )
    cached = {row.depth: known(row.cached_tokens) for row in run.rows}
    assert cached[1.0] < cached[0.75]
    assert cached[0.75] > cached[0.5] > cached[0.25] > 0
    assert all(row.correct for row in run.rows)


def test_reuse_verify_compares_both_ways(niah: Command, tmp_path: Path) -> None:
    said = niah("run", "--kv", "bf16", "-l", "512", "-d", "3", "-n", "1", "--reuse", "verify", "--out", tmp_path)
    assert said.code == 0
    check = package.load(tmp_path).manifest["reuse_check"]["bf16"]
    assert check["cells"] == 3
    assert check["same_answers"] >= 2
    assert check["max_logprob_difference"] < rounding(package.load(tmp_path)) + 0.03


def test_gemma3_window_layers_hold_512_tokens(tmp_path: Path) -> None:
    run = package.run(model="gemma3-270m", kv="bf16,int8", lengths="768", depths=3, trials=1, out=str(tmp_path))
    shape = ModelShape.from_folder(Path(str(_gemma_folder())))
    for row in run.rows:
        assert row.outcome == "answered"
        assert known(row.prompt_tokens) + known(row.answer_budget) == 768
        assert row.kv_memory.logical_bytes == row.kv_memory.formula_bytes
        assert known(row.kv_memory.logical_bytes) == kv_bytes(shape, parse_one(row.kv), known(row.kv_memory.tokens))
    one = next(row for row in run.rows if row.kv == "bf16")
    assert known(one.kv_memory.logical_bytes) == (3 * known(one.kv_memory.tokens) + 15 * 512) * 2 * 256 * 2
    # 48 of 50 at 512 and 1,024 tokens; without <bos> it was 22
    assert sum(bool(row.correct) for row in run.rows) >= 4
    assert run.setting("int8")["effective"]["prompt.start"] == "<bos>"


@pytest.mark.parametrize("backend", ["transformers", "llamacpp"])
def test_gemma3_begins_with_one_bos(backend: str) -> None:
    """Its GGUF file says add_bos_token=True and add_eos_token=False; 2 is <bos>, 1 is <eos>."""
    plan = plan_run(
        build_config({"backend": {"name": backend}, "model": "gemma3-270m", "grid": {"lengths": "512", "trials": 1}})
    )
    for prompt in plan.builder.prompts(plan.groups[0]):
        ids = prompt.ids()
        assert (ids[0], ids.count(2), ids.count(1)) == (2, 1, 0)


def _gemma_folder() -> Path:
    from niah.engines.checkpoint.gguf import converted_folder

    return converted_folder("gemma3-270m")
