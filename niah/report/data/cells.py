"""Every cell as the page's table and drawer need it: columns, shared strings, and needles in their surroundings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from niah.report.data.surroundings import Surrounding, Surroundings
from niah.store.read import RunRecord
from niah.store.schema import Row

# texts of all cells together may take this many bytes in the page; the rest stays in rows.jsonl
_TEXT_BUDGET = 600_000
_LONGEST_TEXT = 4_000
_SHORTEST_TEXT = 20
# the same for the text around needles, which settings share
_AROUND_BUDGET = 400_000
_AROUND_STEPS = (240, 160, 100, 60, 30)

_PLAIN = (
    "cell_id", "length", "depth", "depth_real", "trial", "correct", "score", "logprob", "prompt_tokens",
    "engine_prompt_tokens", "output_tokens", "answer_budget", "cached_tokens", "attempt", "answer_prefix",
)  # fmt: skip
# columns whose few values come again and again are stored as numbers of a list
_SHARED = ("kv", "outcome", "task", "haystack", "scorer", "why", "stop", "error", "error_kind")
_MEMORY = ("tokens", "logical_bytes", "allocated_bytes", "pool_bytes", "formula_bytes", "reference_bytes")
_TIMING = ("prefill_s", "first_token_s", "total_s")


def cell_data(records: Sequence[RunRecord], around: Sequence[Surroundings] = ()) -> dict[str, Any]:
    """Every cell for the page's table and drawer, column names apart so that they are stored once.

    Args:
        around: what stands around the needles of each record, as far as it is known.
    """
    limit = _text_limit([text for record in records for row in record.rows for text in _texts(row)])
    strings: dict[str, int] = {}
    pairs: dict[str, int] = {}
    lines = []
    for index, record in enumerate(records):
        lines += [[index, *_cell_line(row, pairs, strings, limit)] for row in record.rows]
    columns = [
        "run",
        *_PLAIN,
        *_SHARED,
        *_MEMORY,
        *_TIMING,
        "cost_usd",
        "source",
        "pair",
        "answer",
        "reasoning",
        "expected",
    ]
    return {
        "columns": columns,
        "shared": [*_SHARED, "source"],
        "strings": list(strings),
        "runs": [record.path.name for record in records],
        "kvs": [record.kvs() for record in records],
        "cells": lines,
        "pairs": _pair_texts(records, around, pairs),
    }


def _pair_texts(
    records: Sequence[RunRecord], around: Sequence[Surroundings], pairs: Mapping[str, int]
) -> list[list[Any]]:
    """For each pair its question and, where known, before, needle, after, lead and whether the hash agrees."""
    known: dict[str, Surrounding] = {}
    for found in reversed(around):
        known |= found.pairs
    questions: dict[str, str] = {}
    for record in records:
        asked = record.manifest.get("questions")
        questions |= {pair: str(text) for pair, text in asked.items()} if isinstance(asked, Mapping) else {}
    wanted = [known[pair] for pair in pairs if pair in known]
    chars = _around_chars(wanted)
    texts: list[list[Any]] = []
    for pair in pairs:
        item = known.get(pair)
        if item is None or chars == 0:
            texts.append([_short(questions.get(pair, ""), _LONGEST_TEXT)])
        else:
            before, after = item.before[-chars:], item.after[:chars]
            needle = _short(item.needle, _LONGEST_TEXT)
            texts.append([_short(item.question, _LONGEST_TEXT), before, needle, after, item.lead, int(item.matches)])
    return texts


def _around_chars(found: Sequence[Surrounding]) -> int:
    """Characters to show on each side of a needle, so that all together keep to the budget; 0 when none can be."""
    fixed = sum(len(item.needle) + len(item.question) + len(item.lead) for item in found)
    for chars in _AROUND_STEPS:
        size = sum(_bytes(item.before[-chars:]) + _bytes(item.after[:chars]) for item in found)
        if fixed + size <= _AROUND_BUDGET:
            return chars
    return 0


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _texts(row: Row) -> tuple[str, ...]:
    return (row.answer, row.reasoning, row.why, row.error or "", *row.expected)


def _text_limit(texts: Sequence[str]) -> int:
    """The longest text to show, halved until all together keep to the budget."""
    limit = _LONGEST_TEXT
    while limit > _SHORTEST_TEXT and sum(_bytes(_short(text, limit)) for text in texts) > _TEXT_BUDGET:
        limit //= 2
    return limit


def _cell_line(row: Row, pairs: dict[str, int], strings: dict[str, int], limit: int) -> list[Any]:
    def number(text: str | None) -> int:
        return strings.setdefault(_short(text or "", limit), len(strings))

    memory, timing = row.kv_memory, row.timing
    return [
        *(_number(getattr(row, name)) for name in _PLAIN),
        *(number(getattr(row, name)) for name in _SHARED),
        *(getattr(memory, name) for name in _MEMORY),
        *(_number(getattr(timing, name)) for name in _TIMING),
        _number(row.cost_usd),
        number(memory.source),
        pairs.setdefault(row.pair_id, len(pairs)),
        _short(row.answer, limit),
        _short(row.reasoning, limit),
        [_short(text, limit) for text in row.expected],
    ]


def _number(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return round(value, 6) if math.isfinite(value) else None


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… (cut; whole in rows.jsonl)"


def embedded(data: Mapping[str, Any]) -> str:
    """JSON that can stand inside a script element: nothing in it can close the element or start a comment."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
