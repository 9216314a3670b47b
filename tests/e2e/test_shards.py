"""A grid done in parts and put together is the run that one command would have made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import niah as package
from tests.helpers.command import Command

GRID = ("--kv", "bf16,int8", "-l", "512,1k", "-d", "3", "-n", "3")
RUN = ("run", "-b", "oracle", *GRID)


def _facts(run: Any) -> set[tuple[Any, ...]]:
    return {(row.cell_id, row.pair_id, row.kv, row.answer, row.prompt_sha256) for row in run.rows}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made")
    grid: dict[str, Any] = {"lengths": "512,1k", "depths": 3, "trials": 3}
    for index in (1, 2, 3, 4):
        package.run(backend="oracle", kv="bf16,int8", shard=f"{index}/4", out=str(out), **grid)
    return out


@pytest.fixture
def shards(made: Path, tmp_path: Path) -> list[Path]:
    shutil.copytree(made, tmp_path / "parts")
    return sorted((tmp_path / "parts").glob("*-shard-*"))


def test_the_parts_make_the_whole(niah: Command, shards: list[Path], tmp_path: Path) -> None:
    niah(*RUN, "--out", tmp_path / "whole")
    said = niah("merge", *shards, "--json")
    assert said.code == 0
    merged, whole = package.load(said.document()["run"]), package.load(tmp_path / "whole")
    assert _facts(merged) == _facts(whole)
    assert len(merged.rows) == 2 * 2 * 3 * 3
    assert merged.path.name == whole.path.name, "the same command finds it"
    assert merged.manifest["status"] == "finished"
    assert [part["shard"]["index"] for part in merged.manifest["merged_from"]] == [1, 2, 3, 4]
    for name in ("plan", "questions"):
        assert merged.manifest[name] == whole.manifest[name]
    assert (merged.path / "report.html").is_file()
    assert (merged.path / "rows.parquet").is_file()
    again = niah(*RUN, "--out", tmp_path / "parts")
    assert "36 done, 0 failed and asked again, 0 new" in again.err
    assert len(package.load(merged.path).manifest["merged_from"]) == 4
    row = merged.rows[0]
    assert niah("cell", merged.path, row.cell_id, "--prompt", "--json").document()["matches"] is True


def test_merging_again_adds_nothing_and_later_shards_what_they_have(niah: Command, shards: list[Path]) -> None:
    first = niah("merge", *shards[:2], "--json")
    assert "shards 3, 4 are missing" in first.err
    merged = Path(first.document()["run"])
    assert package.load(merged).manifest["status"] == "interrupted"
    assert niah("merge", *shards[:2], "--json").document()["added"] == 0
    second = niah("merge", *shards[2:], "--json").document()
    assert (second["missing"], second["cells"]) == ([], 36)
    assert package.load(merged).manifest["status"] == "finished"


def test_the_whole_command_does_what_is_missing(niah: Command, shards: list[Path]) -> None:
    found = package.merge(*shards[:3])
    assert len(found.rows) < 36
    said = niah(*RUN, "--out", shards[0].parent)
    assert said.code == 0
    run = package.load(found.path)
    assert len(run.rows) == 36
    assert run.manifest["status"] == "finished"


def test_each_shard_has_short_and_long_contexts(niah: Command) -> None:
    cells = []
    for index in (1, 2):
        plan = niah("plan", "-b", "oracle", *GRID, "--shard", f"{index}/2", "--json").document()
        cells.append(plan["cells"])
        assert plan["tokens_unique"] == 2 * (512 + 1024 + (512 if index == 1 else 1024))
    assert cells == [18, 18]


def test_a_broken_canary_and_a_failed_cell_are_not_forgotten(niah: Command, shards: list[Path]) -> None:
    file = shards[1] / "run.json"
    manifest = json.loads(file.read_text())
    manifest["settings"]["int8"] |= {"broken": True}
    manifest["settings"]["int8"]["canary"]["state"] = "broken"
    manifest["hardware"] = {"cpu": "another"}
    file.write_text(json.dumps(manifest))
    rows = (shards[0] / "rows.jsonl").read_text().splitlines()
    failed = json.loads(rows[0]) | {"outcome": "failed", "correct": None, "score": None, "error": "engine: it died"}
    (shards[0] / "rows.jsonl").write_text("\n".join([json.dumps(failed), *rows[1:]]) + "\n")
    said = niah("merge", *shards, "--json")
    assert "int8: its canary was broken, passed in different shards" in said.err
    assert "the shards have different hardware" in said.err
    merged = package.load(said.document()["run"])
    assert merged.broken("int8")
    assert not merged.broken("bf16")
    assert sum(row.outcome == "failed" for row in merged.rows) == 1
    (shards[0] / "rows.jsonl").write_text("\n".join(rows) + "\n")
    assert niah("merge", shards[0], "--json").document()["added"] == 1
    assert {row.outcome for row in package.load(merged.path).rows} == {"answered"}


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--shard", "5/4"), "I goes from 1 to N"),
        (("--shard", "0/4"), "I goes from 1 to N"),
        (("--shard", "1of4"), "a shard is written I/N"),
        (("--shard", "1/7"), "the grid has 6 contexts (lengths × trials), so some of 7 shards would be empty"),
        (("--shard", "1/2", "--trials", "auto"), "trials auto looks at all cells"),
        (("--shard", "1/2", "--difficulty", "auto"), "difficulty auto looks at all cells"),
    ],
)
def test_what_cannot_be_a_shard(niah: Command, tmp_path: Path, args: tuple[str, ...], sentence: str) -> None:
    said = niah(*RUN, *args, "--out", tmp_path / "out")
    assert said.code == 2
    assert sentence in said.err
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_merged(niah: Command, shards: list[Path], tmp_path: Path) -> None:
    niah(*RUN, "--seed", "9", "--shard", "1/4", "--out", tmp_path / "other")
    other = next((tmp_path / "other").glob("*-shard-*"))
    said = niah("merge", shards[0], other)
    assert said.code == 2
    assert "are shards of different runs" in said.err
    niah(*RUN, "--out", tmp_path / "whole")
    said = niah("merge", tmp_path / "whole")
    assert said.code == 2
    assert "is no shard" in said.err
    manifest = json.loads((other / "run.json").read_text())
    manifest["shard"]["whole"] = "../../elsewhere"
    (other / "run.json").write_text(json.dumps(manifest))
    said = niah("merge", other)
    assert said.code == 2
    assert "cannot be read" in said.err
    assert niah("merge", tmp_path / "none").code == 6
    assert not [path for path in shards[0].parent.iterdir() if "-shard-" not in path.name]
