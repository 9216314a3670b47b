"""``--plugin`` on every command that looks a name up, with one file that brings a setting, task, scorer and backend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import niah as package

EVERYTHING = """
from dataclasses import replace

from niah.backends.oracle import PLUGIN as ORACLE
from niah.haystacks.noise import PLUGIN as NOISE
from niah.plugins import KVConfig, KVPreset, Score, ScorerPlugin, TokenHead
from niah.scoring.exact import PLUGIN as EXACT
from niah.tasks.multikey import PLUGIN as MULTIKEY


def score(answer, case):
    return replace(EXACT.score(answer, case), scorer="own-scorer")


def make(*arguments):
    return [replace(case, scorer="own-scorer") for case in MULTIKEY.make(*arguments)]


PLUGINS = [
    replace(ORACLE, name="own-backend", summary="a backend of mine"),
    replace(MULTIKEY, name="own-task", make=make),
    replace(NOISE, name="own-text"),
    ScorerPlugin("own-scorer", "as exact does", 1, score),
    KVPreset("own8", "8 bits of mine", lambda: KVConfig("own8", TokenHead("int8"), TokenHead("int8"))),
]
"""
GRID = ("--lengths", "512", "--depths", "3", "--trials", "2")
NAMES = ("-b", "own-backend", "--task", "own-task", "--haystack", "own-text", "--kv", "bf16,own8")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "everything.py"
    path.write_text(EVERYTHING)
    return path


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Commands run in one process here; a user's start without what an earlier one has loaded."""
    from niah import registry

    def emptied() -> None:
        for name in ("_from_files", "_paths", "_digests"):
            monkeypatch.setattr(registry, name, {})
        monkeypatch.setattr(registry, "_file_names", set())

    emptied()
    return emptied


def test_names_of_a_file_are_known_everywhere(niah: Any, file: Path, forget: Any, tmp_path: Path) -> None:
    asked = {
        (
            "plan",
            *NAMES,
            *GRID,
        ): "no KV setting named 'own8'|no backend named 'own-backend'|no haystack named 'own-text'",
        ("list", "kv", "own8"): "nothing named 'own8'",
        ("list", "backends", "own-backend"): "nothing named 'own-backend'",
        ("list", "tasks", "own-task"): "nothing named 'own-task'",
        ("list", "haystacks", "own-text"): "nothing named 'own-text'",
        ("list", "scorers", "own-scorer"): "nothing named 'own-scorer'",
        ("memory", "--kv", "own8"): "no KV setting named 'own8'",
        ("memory", "--ladder", "--kv", "own8,own8+paged"): "no KV setting named 'own8'",
        ("init", tmp_path / "made.yaml", "-b", "own-backend"): "no backend named 'own-backend'",
    }
    for arguments, why in asked.items():
        forget()
        without = niah(*arguments)
        assert without.code == 2, arguments
        assert any(reason in without.err for reason in why.split("|")), without.err
        known = niah(*arguments, "--plugin", file)
        assert known.code == 0, known.err
        assert "own" in known.out or "made.yaml" in known.out
    forget()
    assert "own-backend" not in niah("doctor", "--json").document()["backends"]
    assert niah("doctor", "--json", "--plugin", file).document()["backends"]["own-backend"] == "ready"


def test_a_starting_config_names_the_file_that_it_needs(niah: Any, file: Path, forget: Any, tmp_path: Path) -> None:
    config = tmp_path / "made.yaml"
    assert niah("init", config, "-b", "own-backend", "--plugin", file).code == 0
    forget()
    said = niah("plan", config, "--json")
    assert said.code == 0, said.err
    assert f"names plugin files, which are run now: {file}" in said.err


def test_a_run_is_read_back_with_the_file_and_shown_without(niah: Any, file: Path, forget: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for part in ("1/2", "2/2"):
        said = niah("run", *NAMES, *GRID, "--plugin", file, "--shard", part, "--out", out)
        assert said.code == 0, said.err
    shards = sorted(out.glob("*-shard-*"))
    forget()
    run = Path(niah("merge", *shards, "--json").document()["run"])
    rows = package.load(run).rows
    assert {row.kv for row in rows} == {"bf16", "own8"}
    # what is recorded is shown without the file: no name is looked up
    for arguments in (("show", run), ("compare", run), ("export", run, "--to", "csv")):
        assert "own8" in niah(*arguments).out
    around = run / "surroundings.json"
    assert not around.exists(), "the prompts cannot be built again without the task"
    assert niah("merge", *shards, "--plugin", file).code == 0
    assert len(json.loads(around.read_text())["pairs"]) == len(rows) / 2
    around.unlink()
    assert niah("report", run, "--plugin", file).code == 0
    assert around.exists()
    cell = rows[0].cell_id
    forget()
    assert "give them with --plugin" in niah("cell", run, cell, "--prompt").err
    assert niah("cell", run, cell, "--json", "--plugin", file).document()["matches"] is True
    forget()
    assert "no scorer named 'own-scorer'" in niah("rescore", run, "--scorer", "own-scorer").err
    assert niah("rescore", run, "--scorer", "own-scorer", "--plugin", file).code == 0
