"""A chat template that prints the date: one day in every run, whatever the clock says while it is made or read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import chat_template_utils

import niah as package
from tests.helpers.command import Command
from tests.helpers.model_files import CHATML, folder
from tests.helpers.small_tokenizers import gpt2_rust

DATED = "{{ '<|im_start|>system\nToday: ' + strftime_now('%d %b %Y %H:%M:%S') + '<|im_end|>\n' }}" + CHATML
GRID = ("--kv", "bf16", "--no-reference", "--task", "passkey", "--lengths", "1k", "--depths", "2", "--trials", "2")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = folder(tmp_path_factory.mktemp("dated") / "model", gpt2_rust(), DATED)
    torch.manual_seed(7)
    LlamaForCausalLM(LlamaConfig.from_pretrained(path)).save_pretrained(path)
    return path


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set the clock that templates read to a day of January 2031."""

    def set_day(day: int) -> None:
        class Clock(dt.datetime):
            @classmethod
            def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
                return dt.datetime(2031, 1, day, 23, 59, 59, tzinfo=tz)

        monkeypatch.setattr(chat_template_utils, "datetime", Clock)

    return set_day


def _run(niah: Command, model: Path, out: Path, *more: object) -> None:
    said = niah("run", "--model", model, *GRID, "--out", out, "--set", "backend.skip_checks=true", *more)
    # a random model answers nothing right, which its canaries say
    assert said.code in (0, 3), said.err


def test_a_run_is_found_again_and_its_prompts_are_rebuilt(
    niah: Command, model: Path, tmp_path: Path, on: Callable[[int], None]
) -> None:
    on(1)
    _run(niah, model, tmp_path)
    first = package.load(tmp_path)
    on(2)
    _run(niah, model, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [first.path.name]
    assert [row.cell_id for row in package.load(tmp_path).rows] == [row.cell_id for row in first.rows]
    assert first.manifest["model"]["date"] == "2025-01-01"
    assert first.manifest["settings"]["bf16"]["effective"]["prompt.date"] == "2025-01-01"
    for how in ((), ("--trust-run",)):
        said = niah("cell", first.path, first.rows[0].cell_id, "--prompt", *how)
        assert said.code == 0
        assert "Today: 01 Jan 2025 00:00:00<" in said.out


def test_a_day_of_ones_own_is_another_run(
    niah: Command, model: Path, tmp_path: Path, on: Callable[[int], None]
) -> None:
    on(1)
    _run(niah, model, tmp_path / "own", "--set", "backend.date=2026-11-30")
    _run(niah, model, tmp_path / "none")
    own, none = package.load(tmp_path / "own"), package.load(tmp_path / "none")
    assert own.manifest["model"]["date"] == "2026-11-30"
    assert {row.pair_id for row in own.rows}.isdisjoint(row.pair_id for row in none.rows)
    said = niah("cell", own.path, own.rows[0].cell_id, "--prompt")
    assert said.code == 0
    assert "Today: 30 Nov 2026 00:00:00<" in said.out


def test_shards_of_two_days_are_one_run(niah: Command, model: Path, tmp_path: Path, on: Callable[[int], None]) -> None:
    for day in (1, 2):
        on(day)
        _run(niah, model, tmp_path / f"shard{day}", "--shard", f"{day}/2")
    on(3)
    said = niah("merge", tmp_path / "shard1", tmp_path / "shard2", "--out", tmp_path / "merged", "--json")
    assert said.code == 0, said.err
    _run(niah, model, tmp_path / "whole")
    merged, whole = package.load(said.document()["run"]), package.load(tmp_path / "whole")
    assert merged.path.name == whole.path.name
    facts = [{(row.cell_id, row.pair_id, row.prompt_sha256) for row in run.rows} for run in (merged, whole)]
    assert facts[0] == facts[1]
    assert len(facts[0]) == 4
    for row in merged.rows:
        assert niah("cell", merged.path, row.cell_id, "--prompt").code == 0
