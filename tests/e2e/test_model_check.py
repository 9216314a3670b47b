"""The check of a model's first use, as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from tests.helpers import families
from tests.helpers.command import Command

GRID = ("--kv", "bf16", "--lengths", "384", "--depths", "2", "--trials", "1")
QUICK = ("--set", "backend.dtype=fp32", "--set", "backend.threads=1")


def _folder(name: str, target: Path, tokenizer: Path) -> str:
    families.build(name, target, vocab_size=49_152, bos_token_id=1, eos_token_id=2, pad_token_id=2)
    AutoTokenizer.from_pretrained(tokenizer).save_pretrained(target)
    return str(target)


def test_a_model_that_sees_what_follows_ends_the_run(niah: Command, tmp_path: Path, smollm2_folder: Path) -> None:
    """Half of BERT's attention looks ahead: with a cache it cannot say what it says of a whole sequence."""
    model = _folder("bert", tmp_path / "model", smollm2_folder)
    ran = niah("run", "--model", model, *GRID, *QUICK, "--out", str(tmp_path / "out"))
    assert ran.code == 4
    assert "the log-probability of an answer is" in ran.err
    assert "in a plain forward pass" in ran.err
    again = niah(
        "run", "--model", model, *GRID, *QUICK, "--out", str(tmp_path / "out"), "--set", "backend.skip_checks=true"
    )
    assert again.code != 4, again.err
    (run,) = (tmp_path / "out").glob("*/run.json")
    effective = json.loads(run.read_text())["settings"]["bf16"]["effective"]
    assert effective["model_check"].startswith("skipped")


@pytest.mark.parametrize("name", ["mpt", "falcon (ALiBi)"])
def test_attention_that_is_not_told_positions_is_refused(
    name: str, niah: Command, tmp_path: Path, smollm2_folder: Path
) -> None:
    model = _folder(name, tmp_path / "model", smollm2_folder)
    for command in ("plan", "run"):
        ran = niah(command, "--model", model, *GRID, "--out", str(tmp_path / "out"))
        assert ran.code == 2
        assert "ALiBi" in ran.err
        assert "--backend vllm" in ran.err
    assert not (tmp_path / "out").exists(), "no folder is made for what cannot run"


def test_one_kv_head_in_a_table_of_classes_runs(niah: Command, tmp_path: Path, smollm2_folder: Path) -> None:
    """Falcon's attention classes stand in a table that knows no attention of ours: eager attention is exact too."""
    model = _folder("falcon (one KV head)", tmp_path / "model", smollm2_folder)
    ran = niah("run", "--model", model, *GRID, *QUICK, "--out", str(tmp_path / "out"))
    assert ran.code in (0, 3), ran.err  # random weights may say nothing within the budget
    (run,) = (tmp_path / "out").glob("*/run.json")
    effective = json.loads(run.read_text())["settings"]["bf16"]["effective"]
    assert effective["attention"] == "eager"
    assert effective["model_check"].startswith("packed answers equal plain passes within")
