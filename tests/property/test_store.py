"""Rows survive any text, and any kill."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from niah.store.folder import RunFolder
from niah.store.read import newest, read_rows
from niah.store.schema import Row
from niah.types import KVUsage, Timing

# what a row may hold: whole numbers of 64 bits, others that can still be added up
number = st.floats(-1e30, 1e30)
count = st.none() | st.integers(0, 2**63 - 1)
# surrogates too: a decoded model answer may hold half a pair
anything = st.text(st.characters(), max_size=30)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    answered = draw(st.booleans())
    return Row(
        cell_id=draw(st.sampled_from("abcdef")),
        pair_id=draw(anything),
        backend=draw(anything),
        model=draw(anything),
        kv=draw(anything),
        task=draw(anything),
        haystack=draw(anything),
        length=draw(st.integers(1, 2**40)),
        depth=draw(st.floats(0, 1)),
        trial=draw(st.integers(0, 1000)),
        outcome="answered" if answered else draw(st.sampled_from(["failed", "refused", "truncated"])),
        correct=draw(st.booleans()) if answered else None,
        score=draw(st.floats(0, 1)) if answered else None,
        answer=draw(anything),
        expected=tuple(draw(st.lists(anything, max_size=3))),
        logprob=draw(st.none() | number),
        error=draw(st.none() | anything),
        kv_memory=KVUsage(tokens=draw(count), logical_bytes=draw(count), source="reported"),
        timing=Timing(draw(number), draw(number), draw(number)),
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(rows(), min_size=1, max_size=5), st.data())
def test_any_prefix_of_a_rows_file_yields_a_prefix_of_the_rows(written: list[Row], data: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder(Path(name))
        with folder:
            for row in written:
                folder.append(row)
        path = folder.path / "rows.jsonl"
        whole = path.read_bytes()
        assert read_rows(folder).rows == written
        cut = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:cut])
        read = read_rows(folder)
        assert read.rows == written[: len(read.rows)]
        assert len(read.rows) == whole[:cut].count(b"\n")
        assert read.torn == (cut > 0 and not whole[:cut].endswith(b"\n"))
        assert read.bad_lines == []
        with folder:
            folder.append(written[-1])
        assert read_rows(folder).rows == [*read.rows, written[-1]]


@settings(max_examples=60, deadline=None)
@given(st.lists(rows(), max_size=12))
def test_newest_counts_each_cell_once_and_keeps_answers(written: list[Row]) -> None:
    chosen = newest(written)
    assert set(chosen) == {row.cell_id for row in written}
    for cell_id, row in chosen.items():
        same = [other for other in written if other.cell_id == cell_id]
        answered = [other for other in same if other.outcome == "answered"]
        assert row is (answered or same)[-1]
    assert newest([*written, *chosen.values()]) == chosen


@settings(max_examples=60, deadline=None)
@given(rows())
def test_json_round_trip(row: Row) -> None:
    assert Row.from_json(row.to_json()) == row
