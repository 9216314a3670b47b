from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from niah.errors import StoreError
from niah.store.folder import RunFolder
from niah.store.read import RunRecord, newest, read_rows, write_parquet
from niah.store.schema import Row
from niah.types import KVUsage

NO_ANSWER = {"outcome": "failed", "correct": None, "score": None}


def line(row: Row) -> bytes:
    return json.dumps(row.to_json()).encode() + b"\n"


@pytest.mark.parametrize(
    "broken",
    [b"", b"{", b"[]", b"3", b'{"cell_id":"x"}', b"\xff\xfe", b"[" * 100_000, b'{"length": NaN}', b"null"],
)
def test_a_broken_line_in_the_middle_is_reported_and_left_out(
    tmp_path: Path, row: Callable[..., Row], broken: bytes
) -> None:
    lines = [line(row("a")), broken + b"\n", line(row("b"))]
    (tmp_path / "rows.jsonl").write_bytes(b"".join(lines))
    read = read_rows(RunFolder(tmp_path))
    assert [r.cell_id for r in read.rows] == ["a", "b"]
    assert read.bad_lines == ([2] if broken else [])
    assert not read.torn


def test_infinite_numbers_make_a_broken_line(tmp_path: Path, row: Callable[..., Row]) -> None:
    text = line(row("a", logprob=-1.5)).replace(b"-1.5", b"-1e999")
    (tmp_path / "rows.jsonl").write_bytes(text)
    assert read_rows(RunFolder(tmp_path)).bad_lines == [1]


def test_windows_line_ends_are_fine(tmp_path: Path, row: Callable[..., Row]) -> None:
    (tmp_path / "rows.jsonl").write_bytes(line(row("a")).replace(b"\n", b"\r\n"))
    assert len(read_rows(RunFolder(tmp_path)).rows) == 1


def test_the_last_line_counts_only_with_its_end(tmp_path: Path, row: Callable[..., Row]) -> None:
    (tmp_path / "rows.jsonl").write_bytes(line(row("a")) + line(row("b"))[:-1])
    read = read_rows(RunFolder(tmp_path))
    assert [r.cell_id for r in read.rows] == ["a"]
    assert read.torn


def test_no_rows_yet(tmp_path: Path) -> None:
    assert read_rows(RunFolder(tmp_path)).rows == []


def test_rows_of_a_newer_niah_are_not_skipped_silently(tmp_path: Path, row: Callable[..., Row]) -> None:
    (tmp_path / "rows.jsonl").write_bytes(json.dumps(row("a").to_json() | {"schema": 99}).encode() + b"\n")
    with pytest.raises(StoreError, match="newer niah"):
        read_rows(RunFolder(tmp_path))


def test_the_newest_answer_counts(row: Callable[..., Row]) -> None:
    failed = row("a", **NO_ANSWER)
    first, second = row("a", attempt=1, correct=False, score=0.0), row("a", attempt=2)
    assert newest([failed, first])["a"] is first
    assert newest([first, failed])["a"] is first
    assert newest([first, second])["a"] is second
    later = row("a", attempt=3, **NO_ANSWER)
    assert newest([failed, later])["a"] is later
    assert newest([second, failed, later])["a"] is second


def record(tmp_path: Path, rows: Any, manifest: Any = None) -> RunRecord:
    (tmp_path / "run.json").write_text(json.dumps(manifest or {"schema": 1}))
    (tmp_path / "rows.jsonl").write_bytes(b"".join(line(r) for r in rows))
    return RunRecord.load(tmp_path)


def test_load_counts_each_cell_once(tmp_path: Path, row: Callable[..., Row]) -> None:
    loaded = record(tmp_path, [row("a", **NO_ANSWER), row("b"), row("a")])
    assert [(r.cell_id, r.outcome) for r in loaded.rows] == [("a", "answered"), ("b", "answered")]


def test_settings_keep_the_manifests_order(tmp_path: Path, row: Callable[..., Row]) -> None:
    manifest = {"schema": 1, "reference": "bf16", "settings": {"kivi2": {"broken": True}, "bf16": {}}}
    loaded = record(tmp_path, [row("a", kv="int8"), row("b", kv="bf16")], manifest)
    assert loaded.kvs() == ["kivi2", "bf16", "int8"]
    assert loaded.broken("kivi2")
    assert not loaded.broken("bf16")
    assert not loaded.broken("int8")
    assert loaded.reference == "bf16"


@pytest.mark.parametrize(
    "manifest", [{"settings": [1]}, {"settings": {"bf16": 3}}, {"reference": 7}, {"reference": "x"}]
)
def test_an_odd_manifest_does_no_harm(tmp_path: Path, row: Callable[..., Row], manifest: Any) -> None:
    loaded = record(tmp_path, [row("a", kv="bf16")], manifest)
    assert loaded.kvs() == ["bf16"]
    assert not loaded.broken("bf16")
    assert loaded.reference is None


def test_frame_is_flat_and_keeps_missing_counts(tmp_path: Path, row: Callable[..., Row]) -> None:
    loaded = record(
        tmp_path,
        [row("a", kv_memory=KVUsage(tokens=5, logical_bytes=2**62 + 1, source="reported")), row("b", **NO_ANSWER)],
    )
    frame = loaded.frame()
    assert list(frame["cell_id"]) == ["a", "b"]
    # as a float this number would lose its last digit
    assert frame["kv_memory_logical_bytes"][0] == 2**62 + 1
    assert frame["kv_memory_logical_bytes"].isna()[1]
    assert frame["kv_memory_source"][1] == "not_observable"
    assert frame["correct"][0]
    assert frame["correct"].isna()[1]
    assert frame["timing_total_s"].sum() == 0.0
    assert frame["score"].mean() == 1.0


def test_frame_of_no_rows_has_the_columns(tmp_path: Path) -> None:
    frame = record(tmp_path, []).frame()
    assert len(frame) == 0
    assert {"cell_id", "kv_memory_tokens", "timing_prefill_s"} <= set(frame.columns)


def test_parquet_reads_back(tmp_path: Path, row: Callable[..., Row]) -> None:
    import pandas as pd

    loaded = record(tmp_path, [row("a", answer="x \ud83d", expected=("1", "2")), row("b", logprob=-0.5)])
    path = write_parquet(loaded)
    assert path == tmp_path / "rows.parquet"
    back = pd.read_parquet(path)
    assert list(back["cell_id"]) == ["a", "b"]
    assert list(back["expected"][0]) == ["1", "2"]
    assert back["answer"][0] == "x ?"
    assert back["logprob"][1] == -0.5
    assert back["kv_memory_tokens"].isna().all()


def test_parquet_gives_the_frame_back(tmp_path: Path, row: Callable[..., Row]) -> None:
    import pandas as pd

    big = KVUsage(tokens=5, logical_bytes=2**62 + 1, source="reported")
    rows = [
        row("a", kv_memory=big),
        row("b", **NO_ANSWER),
        row("c", cost_usd=0.25, logprob=-1e-300, answer="x" * 10**6),
    ]
    loaded = record(tmp_path, rows)
    back, frame = pd.read_parquet(write_parquet(loaded)), loaded.frame()
    assert back["kv_memory_logical_bytes"][0] == 2**62 + 1
    assert list(back.columns) == list(frame.columns)
    kinds, expected = ({name: str(kind) for name, kind in each.dtypes.items()} for each in (back, frame))
    assert {name for name in kinds if kinds[name] != expected[name]} <= {"error", "expected"}, "all None, or lists"
    for name in ("logprob", "cost_usd", "answer", "correct", "length", "depth", "answer_prefix"):
        assert back[name].equals(frame[name])
    (tmp_path / "empty").mkdir()
    empty = write_parquet(record(tmp_path / "empty", []))
    assert list(pd.read_parquet(empty).columns) == list(frame.columns)


def test_parquet_needs_no_pandas(tmp_path: Path, row: Callable[..., Row]) -> None:
    loaded = record(tmp_path, [row("a")])
    code = (
        "import sys, pathlib\n"
        "from niah.store.read import RunRecord, write_parquet\n"
        f"write_parquet(RunRecord.load(pathlib.Path({str(loaded.path)!r})))\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "rows.parquet").is_file()
