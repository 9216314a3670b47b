"""SmolLM2-135M under methods that change what is kept: what the commands of docs/kv-structures.md give."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import niah as package
from niah.kv.grammar import parse_one
from niah.kv.memory.totals import kv_bytes
from niah.models.shape import ModelShape
from niah.store.schema import Row
from tests.helpers.known import known

pytestmark = pytest.mark.model
LENGTH, WINDOW = 640, 256


@pytest.fixture(scope="module")
def run(smollm2_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> package.Run:
    kv = f"bf16,streaming(sinks=4,window={WINDOW}),window({WINDOW}),infini({WINDOW}),mqa"
    out = str(tmp_path_factory.mktemp("methods"))
    return package.run(model=str(smollm2_folder), kv=kv, lengths=str(LENGTH), depths=3, trials=1, out=out)


def test_bytes_are_measured_and_bounded(run: package.Run, smollm2_folder: Path) -> None:
    shape = ModelShape.from_folder(smollm2_folder)
    for row in run.rows:
        # a model that was not made for its setting may talk until its budget is used up
        assert row.outcome in ("answered", "truncated")
        memory = row.kv_memory
        assert (
            known(memory.logical_bytes)
            == known(memory.formula_bytes)
            == kv_bytes(shape, parse_one(row.kv), known(memory.tokens))
        )
        assert known(memory.allocated_bytes) >= known(memory.logical_bytes)
    held = {row.kv: row.kv_memory.logical_bytes for row in run.rows}
    per_token = 30 * 3 * 2 * 64 * 2
    assert held[f"streaming(window={WINDOW})"] == (WINDOW + 4) * per_token
    assert held[f"window(size={WINDOW})"] == WINDOW * per_token
    assert held[f"infini(segment={WINDOW})"] == WINDOW * per_token + 30 * 3 * (64 * 64 + 64) * 4
    merged = next(row.kv_memory for row in run.rows if row.kv == "mqa")
    assert known(merged.logical_bytes) * 3 == known(merged.tokens) * per_token


def test_recall_outside_the_window_is_chance_and_inside_it_stays(run: package.Run) -> None:
    """Guessing seven digits never succeeds, so outside means no hit; the last needle lies within the window."""
    frame = run.frame()
    right = frame.pivot_table(index="depth", columns="kv", values="correct", aggfunc="sum")
    logprob = frame.pivot_table(index="depth", columns="kv", values="logprob")
    streaming, window, infini = f"streaming(window={WINDOW})", f"window(size={WINDOW})", f"infini(segment={WINDOW})"
    assert right.loc[[0.0, 0.5], "bf16"].sum() >= 1, "the reference must find something to lose"
    for kv in (streaming, window, infini):
        assert right.loc[[0.0, 0.5], kv].sum() == 0
        assert (logprob[kv] - logprob["bf16"])[[0.0, 0.5]].max() < -1.0, "the answer has become far less likely"
    assert right[streaming][1.0] == right["bf16"][1.0] == 1
    assert abs(logprob[streaming][1.0] - logprob["bf16"][1.0]) < 1.0


def test_what_is_not_trained_says_so(run: package.Run) -> None:
    assert "not trained" in run.setting(f"infini(segment={WINDOW})")["effective"]["kv.trained"]
    assert "not up-trained" in run.setting("mqa")["effective"]["kv.heads"]
    assert run.setting(f"streaming(window={WINDOW})")["effective"]["kv.sink_positions"] == "in_cache"


def test_a_ring_gives_the_answers_of_one_process(smollm2_folder: Path, tmp_path: Path) -> None:
    ring = package.run(
        model=str(smollm2_folder),
        kv="ring(2)",
        lengths="320",
        depths=3,
        trials=1,
        out=str(tmp_path),
        backend={"name": "transformers", "oversubscribe": True},
    )
    cells: dict[str, dict[str, Row]] = {}
    for row in ring.rows:
        cells.setdefault(row.pair_id, {})[row.kv] = row
    assert len(cells) == 3
    for pair in cells.values():
        one, two = pair["bf16"], pair["ring(ranks=2)"]
        assert two.answer == one.answer
        # bf16 rounds what one process adds, the ring adds in fp32; in fp32 both agree within 1e-4 (unit tests)
        assert two.logprob == pytest.approx(one.logprob, abs=0.3)
        assert two.kv_memory.logical_bytes == one.kv_memory.logical_bytes
    shares = ring.setting("ring(ranks=2)")["effective"]["kv.ring_bytes_per_rank"].split(", ")
    assert abs(int(shares[0]) - int(shares[1])) <= 30 * 3 * 2 * 64 * 2


def test_own_bf16_layers_equal_the_librarys_cache(smollm2_folder: Path) -> None:
    from transformers import AutoModelForCausalLM, DynamicCache

    from niah.backends.transformers.attention import register
    from niah.backends.transformers.load import ready
    from niah.backends.transformers.method import Setting, open_running

    model = AutoModelForCausalLM.from_pretrained(
        smollm2_folder, dtype=torch.bfloat16, attn_implementation=register()
    ).eval()
    loaded, ids = ready(model, register()), list(range(100, 400))
    with torch.inference_mode():
        setting = Setting(loaded, parse_one("bf16"), ModelShape.from_folder(smollm2_folder))
        with open_running(setting) as own:
            held = own.cache()
            for start in (0, 150):
                logits = own.prefill(held, ids[start : start + 150], start)
        cache = DynamicCache(config=model.config)
        for start in (0, 150):
            plain = model(input_ids=torch.tensor([ids[start : start + 150]]), **{loaded.cache_argument: cache}).logits
    assert torch.equal(logits[-1], plain[0, -1])
