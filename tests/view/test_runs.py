"""Runs as a list, and a run followed while it grows."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from niah.errors import StoreError
from niah.store.folder import RunFolder
from niah.view.follow import Follower
from niah.view.runs import Results, entry_of
from tests.helpers.reports import make_rows, manifest


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    path = tmp_path / "2026-11-29-a-b-0123456789"
    path.mkdir()
    (path / "run.json").write_text(json.dumps(manifest() | {"status": "running"}))
    return RunFolder(path)


def test_a_run_in_the_list(run: RunFolder, tmp_path: Path) -> None:
    rows = make_rows(1)[:3]
    with run:
        for row in rows:
            run.append(row)
    (entry,) = Results.open(tmp_path).entries()
    assert (entry.name, entry.status, entry.cells, entry.done) == (run.path.name, "running", 600, 3)
    assert entry.kvs == ("bf16", "int8", "streaming(sinks=4,window=1024)", "kivi2")
    assert not entry.silent
    long_ago = time.time() - 3600
    for name in ("rows.jsonl", "run.json"):
        os.utime(run.path / name, (long_ago, long_ago))
    assert entry_of(run).silent


def test_broken_runs_are_listed_as_such(run: RunFolder, tmp_path: Path) -> None:
    (run.path / "run.json").write_text("{")
    (entry,) = Results.open(tmp_path).entries()
    assert entry.status == "unreadable"
    assert "cannot be read" in entry.note
    (run.path / "run.json").write_text('{"plan": 3, "settings": [], "asked": null, "status": 7}')
    assert entry_of(run).status == "7"


@pytest.mark.parametrize("name", ["..", ".", "", "../x", "/etc", "a/../b", "%2e%2e", "\x00", "run.json"])
def test_path_tricks_find_nothing(run: RunFolder, name: str) -> None:
    with pytest.raises(StoreError, match="there is no run"):
        Results.open(run.path.parent).find(name)


def test_a_link_out_of_the_folder_is_not_a_run(run: RunFolder, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "escape").symlink_to(run.path)
    assert Results.open(results).runs() == []
    with pytest.raises(StoreError):
        Results.open(results).find("escape")


def test_one_run_folder_shows_that_run_only(run: RunFolder) -> None:
    other = run.path.parent / "other"
    other.mkdir()
    (other / "run.json").write_text("{}")
    assert [found.path.name for found in Results.open(run.path).runs()] == [run.path.name]
    assert len(Results.open(run.path.parent).runs()) == 2


def test_following(run: RunFolder) -> None:
    follower = Follower(run)
    follower.read()
    assert follower.snapshot()["done"] == 0
    rows = [row for row in make_rows(6) if row.kv == "int8"]
    with run:
        for row in rows[:60]:
            run.append(row)
        follower.read()
        assert follower.snapshot()["done"] == 60
        for row in rows[60:]:
            run.append(row)
    follower.read()
    found = follower.snapshot()
    int8 = next(setting for setting in found["settings"] if setting["kv"] == "int8")
    assert found["done"] == len(rows) == int8["answered"] + int8["failed"]
    assert int8["right"] == sum(row.correct is True for row in rows)
    assert int8["squares"]["8192,0.5"] == [0, 0, 6]
    assert [s["kv"] for s in found["settings"] if s["broken"]] == ["kivi2"]
    assert found["last"][0]["cell"] == rows[-1].cell_id
    assert found["last"][0]["verdict"] in ("right", "wrong")


def test_torn_damaged_and_repeated_lines(run: RunFolder) -> None:
    row, other = make_rows(1)[:2]
    failed = replace(row, outcome="failed", correct=None, score=None, error="engine: no", attempt=2)
    lines = [json.dumps(r.to_json()) + "\n" for r in (row, failed, other)]
    path = run.path / "rows.jsonl"
    path.write_text(lines[0] + "not a row\n" + lines[1] + lines[2][:40])
    follower = Follower(run)
    follower.read()
    found = follower.snapshot()
    # the answer stays although a later attempt failed; half a line is not there yet
    assert (found["done"], found["settings"][0]["answered"], found["settings"][0]["failed"]) == (1, 1, 0)
    path.write_text(lines[0] + "not a row\n" + lines[1] + lines[2])
    follower.read()
    assert follower.snapshot()["done"] == 2
    path.write_text(lines[2])
    follower.read()
    assert follower.snapshot()["done"] == 1


def test_the_pace_comes_from_the_rows_own_times(run: RunFolder) -> None:
    with run:
        for n, row in enumerate(make_rows(1)[:11]):
            run.append(replace(row, finished_at=f"2026-11-29T18:20:{2 * n:02d}+00:00"))
    follower = Follower(run)
    follower.read()
    found = follower.snapshot()
    assert found["per_minute"] == 30
    assert found["left_s"] == pytest.approx((600 - 11) * 2)
