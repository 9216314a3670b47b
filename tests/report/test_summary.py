from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from niah.report.data.summary import (
    bytes_per_token,
    failure_kinds,
    human_bytes,
    memory_points,
    mismatches,
    percent,
    summaries,
    summary_sentences,
)
from niah.store.read import RunRecord
from niah.store.schema import Row
from niah.types import KVUsage


def by_name(record: RunRecord) -> Any:
    return {item.kv: item for item in summaries(record)}


def test_one_summary_a_setting(record: RunRecord) -> None:
    found = by_name(record)
    assert list(found) == ["bf16", "int8", "streaming(sinks=4,window=1024)", "kivi2"]
    assert found["bf16"].is_reference
    assert found["bf16"].delta is None
    assert found["bf16"].kv_bytes_per_token == 23040
    assert found["bf16"].ratio == 1.0
    assert found["kivi2"].broken
    assert found["kivi2"].kv_bytes_per_token == 4320
    assert found["kivi2"].ratio == 4320 / 23040
    assert found["int8"].pairs == 129
    assert found["int8"].total.failed == 8
    assert found["int8"].share_of_asked == found["int8"].total.hits / 144


def test_bytes_are_unknown_and_never_zero(cell: Callable[..., Row]) -> None:
    hosted = [cell(kv_memory=KVUsage())]
    assert bytes_per_token(hosted) is None
    assert memory_points(hosted) == []
    half = [cell(kv_memory=KVUsage(tokens=10, logical_bytes=100)), cell(trial=1, kv_memory=KVUsage())]
    assert bytes_per_token(half) == 10


def test_one_memory_point_a_length(cell: Callable[..., Row]) -> None:
    rows = [cell(length=2048, trial=n, kv_memory=KVUsage(tokens=n, logical_bytes=n * 10)) for n in (3, 9, 5)]
    points = memory_points([*rows, cell(length=1024, kv_memory=KVUsage(tokens=1, formula_bytes=7))])
    assert [(p.length, p.tokens, p.logical_bytes, p.formula_bytes) for p in points] == [
        (1024, 1, None, 7),
        (2048, 9, 90, None),
    ]


def test_a_mismatch_with_the_formula_is_found(record: RunRecord) -> None:
    (found,) = mismatches(record)
    assert (found.kv, found.cells, found.length) == ("int8", 1, 512)
    assert (found.logical_bytes, found.formula_bytes) == (6_000_000, 499 * 12240)


def test_sampled_bytes_are_not_held_against_the_formula(record: RunRecord) -> None:
    rows = tuple(replace(r, kv_memory=replace(r.kv_memory, source="sampled_metrics")) for r in record.rows)
    assert mismatches(replace(record, rows=rows)) == []


def test_failures_by_kind(record: RunRecord) -> None:
    found = [(f.kv, f.kind, f.cells) for f in failure_kinds(record.rows)]
    assert found == [
        ("bf16", "answer_budget", 6),
        ("int8", "out_of_memory", 6),
        ("int8", "engine_error", 2),
        ("bf16", "refused", 1),
    ]
    assert failure_kinds(record.rows)[1].message == "out_of_memory: 8192 tokens: out of memory"


def test_the_sentences_say_accuracy_bytes_and_what_is_broken(record: RunRecord) -> None:
    text = summary_sentences(record)
    item = by_name(record)["int8"]
    assert percent(item.total.share) in text[1]
    assert "12,240 KV bytes per token (53.1 % of a 16-bit cache)" in text[1]
    assert "fewer than bf16 on the same 129 pairs" in text[1]
    assert text[3].startswith("kivi2 is broken")
    assert text[4] == "8 cells failed: asked again by the same command, not counted as wrong."
    assert text[5] == "7 cells were truncated or refused and not scored."
    assert not any("kivi2 answers" in sentence for sentence in text)


def test_the_sentences_of_nothing_and_of_unanswered_cells(record: RunRecord, cell: Callable[..., Row]) -> None:
    assert summary_sentences(replace(record, rows=(), manifest={})) == ["No cell has been run yet."]
    assert summary_sentences(replace(record, rows=(cell(lost="failed"),), manifest={})) == [
        "int8 has no answered cell.",
        "1 cell failed: asked again by the same command, not counted as wrong.",
    ]


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100 %"), (0.9999, "99.9+ %"), (0.0, "0 %"), (0.0001, "<0.1 %"), (0.964, "96.4 %"), (0.5, "50.0 %")],
)
def test_percent_rounds_nothing_to_perfect(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (3 * 2**20, "3 MiB"), (2**50, "1024 TiB"), (1.5 * 2**30, "1.5 GiB")],
)
def test_human_bytes(size: float, text: str) -> None:
    assert human_bytes(size) == text
