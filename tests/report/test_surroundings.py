"""Needles in their surroundings: built again from a real run on the oracle, checked, kept and read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import niah as package
from niah.report.data.surroundings import (
    FILE,
    Surroundings,
    build_surroundings,
    read_surroundings,
    surroundings_of,
    write_surroundings,
)
from niah.runner.reread import plan_again
from niah.store.read import RunRecord


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    out = tmp_path_factory.mktemp("out")
    return package.run(
        backend="oracle", kv=["int8"], lengths="512,1k", depths="0,50,100", trials=2, out=str(out), max_minutes=5
    )


def test_a_run_keeps_the_text_around_every_needle(run: RunRecord) -> None:
    found = read_surroundings(run.path)
    assert found is not None
    assert found.note == ""
    assert set(found.pairs) == {row.pair_id for row in run.rows}
    for row in run.rows:
        item = found.pairs[row.pair_id]
        assert item.matches
        assert row.expected[0] in item.needle
        assert row.expected[0] not in item.question
        assert item.before
        assert 0 < len(item.before) <= 240
        assert len(item.after) <= 240
        assert item.lead.endswith("is") == row.answer_prefix


def test_the_same_is_built_again_without_the_file(run: RunRecord) -> None:
    kept = read_surroundings(run.path)
    (run.path / FILE).rename(run.path / "away")
    try:
        assert surroundings_of(run) == kept
    finally:
        (run.path / "away").rename(run.path / FILE)


def test_another_prompt_than_the_one_sent_is_told(run: RunRecord) -> None:
    rows = [replace(row, prompt_sha256="0" * 64) for row in run.rows]
    found = build_surroundings(rows, plan_again(run.manifest, run.path))
    assert not any(item.matches for item in found.pairs.values())


def test_wrong_answers_come_first_where_not_all_fit(run: RunRecord) -> None:
    wrong = next(row for row in run.rows if row.length == 1024 and row.trial == 1)
    rows = [replace(row, correct=row.pair_id != wrong.pair_id) for row in run.rows]
    found = build_surroundings(rows, plan_again(run.manifest, run.path), token_budget=1024)
    assert wrong.pair_id in found.pairs
    assert {row.length for row in rows if row.pair_id in found.pairs} == {1024}
    assert found.note.startswith("left out for 9 cells of this large run")


@pytest.mark.parametrize(
    ("manifest", "note"),
    [
        ({}, "does not say what was asked"),
        ({"asked": {"config": {"haystack": {"name": "text", "argument": "-"}}}}, "standard input"),
        ({"asked": {"config": {"plugins": ["nobodys.py"]}}}, "plugin files, which a report does not load by itself"),
        ({"asked": {"config": {"backend": {"name": "gone"}}}}, "no backend named 'gone'"),
        ({"asked": {"config": 7}}, "does not say what was asked"),
    ],
)
def test_what_cannot_be_built_again_is_told(
    run: RunRecord, tmp_path: Path, manifest: dict[str, Any], note: str
) -> None:
    found = surroundings_of(RunRecord(tmp_path, manifest, run.rows))
    assert found.pairs == {}
    assert note in found.note
    assert not (tmp_path / "nobodys.py").exists()


def test_a_large_run_is_not_built_again(run: RunRecord, tmp_path: Path) -> None:
    rows = tuple(replace(row, length=1_500_000) for row in run.rows)
    assert surroundings_of(RunRecord(tmp_path, run.manifest, rows)) == Surroundings(
        {}, "this run has 3.0 million tokens of text, which a report does not build again"
    )


DAMAGED = (
    "",
    "{",
    "[]",
    '{"schema": 2, "pairs": {}, "note": ""}',
    '{"schema": 1, "pairs": [], "note": ""}',
    '{"schema": 1, "pairs": {"a": 3}, "note": ""}',
    "[" * 100_000,
)


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert read_surroundings(tmp_path) is None


def test_kept_and_read_are_equal(run: RunRecord, tmp_path: Path) -> None:
    found = read_surroundings(run.path)
    assert found is not None
    odd = Surroundings({"x": replace(next(iter(found.pairs.values())), before="\ud83d", matches=False)}, "why")
    write_surroundings(tmp_path, odd)
    assert read_surroundings(tmp_path) == odd
    assert json.loads((tmp_path / FILE).read_text())["schema"] == 1
