from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from niah.errors import StoreError
from niah.store.schema import Row, row_json_schema
from niah.types import KVUsage, Timing

# fmt: off
DESIGNED = [
    "schema", "cell_id", "pair_id", "backend", "model", "kv",
    "task", "haystack", "length", "depth", "depth_real", "trial",
    "prompt_tokens", "answer_budget", "engine_prompt_tokens", "outcome", "correct", "score",
    "why", "answer", "expected", "logprob", "stop", "cached_tokens",
    "attempt", "error", "kv_memory", "timing", "prompt_sha256",
]
# fmt: on


def full(row: Callable[..., Row]) -> Any:
    return row(
        "c1",
        depth_real=0.4973,
        prompt_tokens=4064,
        engine_prompt_tokens=4064,
        answer_budget=32,
        output_tokens=7,
        scorer="contains@1",
        why="found",
        answer=' "8471926"\n再见 \u2028',
        reasoning="hm",
        answer_prefix=True,
        expected=("8471926", "8,471,926"),
        logprob=-0.41,
        stop="stop",
        cached_tokens=2048,
        attempt=2,
        kv_memory=KVUsage(tokens=4070, logical_bytes=10, formula_bytes=10, source="measured_blocks"),
        timing=Timing(0.1, 0.2, 0.3),
        prompt_sha256="ab",
        finished_at="2026-11-29T18:20:03+00:00",
    )


def test_a_row_survives_json(row: Callable[..., Row]) -> None:
    before = full(row)
    assert Row.from_json(json.loads(json.dumps(before.to_json()))) == before


def test_all_designed_fields_are_there(row: Callable[..., Row]) -> None:
    data = full(row).to_json()
    assert set(DESIGNED) <= set(data)
    assert next(iter(data)) == "schema"
    assert data["expected"] == ["8471926", "8,471,926"]
    assert set(data["kv_memory"]) == {
        "tokens", "logical_bytes", "allocated_bytes", "pool_bytes", "formula_bytes", "reference_bytes",
        "naive_mha_bytes", "source",
    }  # fmt: skip
    assert set(data["timing"]) == {"prefill_s", "first_token_s", "total_s"}


def test_unknown_fields_are_ignored_at_every_level(row: Callable[..., Row]) -> None:
    data = full(row).to_json()
    data["new_in_0_9"] = [1]
    data["kv_memory"]["new"] = 3
    assert Row.from_json(data) == full(row)


@pytest.mark.parametrize("name", ["cell_id", "pair_id", "kv", "length", "depth", "trial", "outcome"])
def test_a_missing_field_is_named(row: Callable[..., Row], name: str) -> None:
    data = full(row).to_json()
    del data[name]
    with pytest.raises(ValueError, match=rf"^{name}: "):
        Row.from_json(data)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("length", 0),
        ("length", "long"),
        ("depth", 1.5),
        ("depth", math.nan),
        ("trial", -1),
        ("outcome", "wrong"),
        ("expected", "8471926"),
        ("kv_memory", {"source": "guess"}),
    ],
)
def test_an_impossible_value_is_named(row: Callable[..., Row], name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name}"):
        Row.from_json(full(row).to_json() | {name: value})


def test_an_answered_row_must_have_been_judged(row: Callable[..., Row]) -> None:
    with pytest.raises(ValueError, match="correct"):
        row(correct=None)
    with pytest.raises(ValueError, match="correct"):
        Row.from_json(full(row).to_json() | {"correct": None})
    assert row(outcome="failed", correct=None, score=None).score is None


def test_a_newer_schema_is_refused(row: Callable[..., Row]) -> None:
    with pytest.raises(StoreError, match="written by a newer niah"):
        Row.from_json(full(row).to_json() | {"schema": 2})


def test_numbers_that_json_cannot_hold_become_null(row: Callable[..., Row]) -> None:
    data = row(logprob=-math.inf, timing=Timing(math.nan, 0.0, 1.0)).to_json()
    assert data["logprob"] is None
    assert data["timing"]["prefill_s"] is None
    json.dumps(data, allow_nan=False)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("out_of_memory: 12 GiB", "out_of_memory"),
        ("timeout", "timeout"),
        (None, "failed"),
        ("Something broke", "failed"),
    ],
)
def test_error_kind(row: Callable[..., Row], error: str | None, kind: str) -> None:
    assert row(outcome="failed", correct=None, score=None, error=error).error_kind == kind


def test_the_json_schema_describes_the_rows(row: Callable[..., Row]) -> None:
    schema = row_json_schema()
    assert set(schema["properties"]) == {f.name for f in fields(Row)}
    assert "cell_id" in schema["required"]
    assert "error" not in schema["required"]
    assert schema["properties"]["length"]["minimum"] == 1
