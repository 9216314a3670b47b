"""The report: one HTML file that works from disk, for ever and without a network."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from niah.errors import StoreError
from niah.kv.base import KVConfig
from niah.report.difference import Difference, build_difference, record_differences
from niah.report.heatmap import record_grid
from niah.report.palette import DIFFERENCE_LIMIT, WORSE_TO_BETTER, Palette, stops
from niah.report.summary import (
    FailureKind,
    Mismatch,
    SettingSummary,
    failure_kinds,
    memory_points,
    mismatches,
    summaries,
    summary_sentences,
)
from niah.report.svg import Chart, Map, difference_picture, grid_map, memory_chart, score_chart
from niah.report.tables import summary_line
from niah.store.folder import write_atomic
from niah.store.read import RunRecord
from niah.store.schema import Row

# texts of all cells together may take this many bytes in the page; the rest stays in rows.jsonl
_TEXT_BUDGET = 600_000
_LONGEST_TEXT = 4_000
_SHORTEST_TEXT = 20
# engines and torch spell dtypes out
_SPELLINGS = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "none": "",
    "false": "no",
    "true": "yes",
}
_LEFT_OPEN = ("", "auto")


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One field of a KV setting: what was asked and what was in force; ``differs`` when both are known and unequal."""

    name: str
    asked: str
    effective: str
    differs: bool


@dataclass(frozen=True, slots=True)
class SettingView:
    """A KV setting as the report shows it."""

    summary: SettingSummary
    cells: list[str]
    lines: list[SettingLine]
    more: list[SettingLine]
    canary: str
    canary_state: str
    canary_why: str
    formula: str

    @property
    def differs(self) -> bool:
        """Whether anything that was asked is not in force."""
        return any(line.differs for line in self.lines)


@dataclass(frozen=True, slots=True)
class RunView:
    """One run as the report shows it, all text and numbers ready."""

    name: str
    title: str
    subtitle: str
    sentences: list[str]
    settings: list[SettingView]
    maps: list[Map]
    differences: list[Map]
    memory: Chart | None
    score: Chart | None
    failures: list[FailureKind]
    mismatches: list[Mismatch]
    facts: list[tuple[str, str]]
    command: str
    warnings: list[str]


def write_report(records: Sequence[RunRecord], path: Path, palette: Palette = "cividis") -> Path:
    """Write the report of one or more runs as one file; returns its path.

    Args:
        records: the first one is what later runs are compared with.

    Raises:
        StoreError: the file cannot be written.
        ValueError: there is no record.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise StoreError(f"cannot make {str(path.parent)!r}: {err.strerror}. Choose another place with -o.") from err
    # a model may end in half a surrogate pair, which no file can hold
    write_atomic(path, render_report(records, palette).encode("utf-8", "replace"))
    return path


def render_report(records: Sequence[RunRecord], palette: Palette = "cividis") -> str:
    """The report as one HTML document without any outside reference.

    Raises:
        ValueError: there is no record.
    """
    if not records:
        raise ValueError("a report needs at least one run")
    script = _template_text("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            runs=[_run_view(record, palette) for record in records],
            across=_across(records),
            columns=list(_HEADINGS),
            data=_embedded(cell_data(records)),
            script=script,
            script_hash=digest,
            style=_template_text("report.css"),
            share_stops=stops(palette),
            difference_stops=WORSE_TO_BETTER,
            difference_limit=round(DIFFERENCE_LIMIT * 100),
        )
    )


_HEADINGS = (
    "KV setting", "state", "accuracy", "95 % interval", "n", "vs. reference", "KV bytes/token", "of 16 bit",
    "failed", "other",
)  # fmt: skip


@cache
def _environment() -> Environment:
    loader = PackageLoader("niah.report", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _template_text(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def _run_view(record: RunRecord, palette: Palette) -> RunView:
    grids = [record_grid(record, kv) for kv in record.kvs()]
    points = [
        (f"{kv} (broken)" if record.broken(kv) else kv, found)
        for kv in record.kvs()
        if (found := memory_points(row for row in record.rows if row.kv == kv))
    ]
    manifest = record.manifest
    models = sorted({row.model for row in record.rows}) or [_get(manifest, "model", "name") or "no model"]
    return RunView(
        name=record.path.name,
        title=", ".join(models),
        subtitle=" · ".join(_distinct(record, name) for name in ("task", "haystack", "backend") if record.rows),
        sentences=summary_sentences(record),
        settings=[_setting_view(record, item) for item in summaries(record)],
        maps=[grid_map(grid, palette) for grid in grids if grid.lengths],
        differences=[difference_picture(difference) for difference in record_differences(record)],
        memory=memory_chart(points),
        score=score_chart(grids),
        failures=failure_kinds(record.rows),
        mismatches=mismatches(record),
        facts=_facts(record),
        command=str(manifest.get("command") or ""),
        warnings=_warnings(record),
    )


def _distinct(record: RunRecord, name: str) -> str:
    return ", ".join(sorted({getattr(row, name) for row in record.rows}))


def _warnings(record: RunRecord) -> list[str]:
    found = []
    if record.torn:
        found.append(
            "The last row was cut off, as after a kill, and is left out; resuming the run asks its cell again."
        )
    if record.bad_lines:
        lines = ", ".join(str(number) for number in record.bad_lines[:20])
        found.append(
            f"Lines of rows.jsonl that are no rows are left out: {lines}{' …' * (len(record.bad_lines) > 20)}."
        )
    planned = _get(record.manifest, "plan", "cells")
    if planned.isdigit() and len(record.rows) < int(planned):
        found.append(f"{int(planned) - len(record.rows):,} of {int(planned):,} planned cells have not been run.")
    status = record.manifest.get("status")
    if status in ("interrupted", "budget"):
        found.append({"interrupted": "The run was interrupted.", "budget": "The run ended at its budget."}[status])
    return found


def _facts(record: RunRecord) -> list[tuple[str, str]]:
    manifest = record.manifest
    facts = [
        ("run folder", record.path.name),
        ("started", str(manifest.get("started_at") or "")),
        ("finished", str(manifest.get("finished_at") or "")),
        ("status", str(manifest.get("status") or "")),
        ("niah", str(manifest.get("niah") or "")),
    ]
    for key in ("asked", "model", "haystack", "tokenizer", "hardware", "versions"):
        facts += [(f"{key} · {name}", _text(value)) for name, value in _section(manifest, key).items()]
    return [(name, value) for name, value in facts if value]


def _section(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = manifest.get(key)
    return part if isinstance(part, Mapping) else {}


def _get(manifest: Mapping[str, Any], section: str, key: str) -> str:
    return str(_section(manifest, section).get(key) or "")


def _setting_view(record: RunRecord, item: SettingSummary) -> SettingView:
    entry = record.setting(item.kv)
    lines = setting_lines(_section(entry, "asked"), _section(entry, "effective"))
    canary = _section(entry, "canary")
    correct, tried = canary.get("correct"), canary.get("asked")
    state = str(canary.get("state") or ("" if not canary else "passed" if canary.get("passed") else "broken"))
    return SettingView(
        summary=item,
        cells=summary_line(item),
        lines=[line for line in lines if line.asked or line.differs],
        more=[line for line in lines if not line.asked and not line.differs],
        canary=f"{correct} of {tried} right" if tried is not None else "not run",
        canary_state=state,
        canary_why=str(canary.get("why") or ""),
        formula=str(entry.get("formula") or ""),
    )


def setting_lines(asked: Mapping[str, Any], effective: Mapping[str, Any]) -> list[SettingLine]:
    """Asked and effective values side by side, asked fields first.

    A field that was left at its default and that the engine does not report is left out. What was asked as ``auto``
    or left open cannot differ. The engine may report a field as ``k_dtype`` or ``kv.k_dtype``.
    """
    defaults = {f.name: _text(getattr(KVConfig(name=""), f.name)) for f in fields(KVConfig)}
    lines = []
    seen = set()
    for name, value in asked.items():
        key = name if name in effective else f"kv.{name}"
        wanted, got = _text(value), _text(effective[key]) if key in effective else ""
        if name == "name" or (key not in effective and wanted == defaults.get(name)):
            continue
        seen.add(key)
        differs = key in effective and wanted not in _LEFT_OPEN and wanted != got
        lines.append(SettingLine(name, wanted, got, differs))
    lines += [SettingLine(key, "", _text(value), differs=False) for key, value in effective.items() if key not in seen]
    return lines


def _text(value: Any) -> str:
    """A manifest's value in words that can be compared: dtypes in short form, lists joined, nothing for None."""
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, float) and value.is_integer() and math.isfinite(value):
        value = int(value)
    text = str(value).removeprefix("torch.")
    return _SPELLINGS.get(text.lower(), text)


def _across(records: Sequence[RunRecord]) -> list[Map]:
    """Difference maps of later runs against the first, for every setting that both have."""
    base = records[0]
    maps = []
    for record in records[1:]:
        for kv in record.kvs():
            broken = record.broken(kv) or base.broken(kv)
            difference: Difference = build_difference(record.rows, base.rows, kv, kv, broken=broken)
            if difference.cells:
                named = replace(difference, kv=f"{kv} in {record.path.name}", reference=base.path.name)
                maps.append(difference_picture(named))
    return maps


_PLAIN = (
    "cell_id", "length", "depth", "depth_real", "trial", "correct", "score", "logprob", "prompt_tokens",
    "engine_prompt_tokens", "output_tokens", "answer_budget", "cached_tokens", "attempt", "answer_prefix",
)  # fmt: skip
# columns whose few values come again and again are stored as numbers of a list
_SHARED = ("kv", "outcome", "task", "haystack", "scorer", "why", "stop", "error", "error_kind")
_MEMORY = ("tokens", "logical_bytes", "allocated_bytes", "pool_bytes", "formula_bytes", "reference_bytes")


def cell_data(records: Sequence[RunRecord]) -> dict[str, Any]:
    """Every cell for the page's table and drawer, column names apart so that they are stored once."""
    limit = _text_limit([text for record in records for row in record.rows for text in _texts(row)])
    strings: dict[str, int] = {}
    lines = []
    for index, record in enumerate(records):
        known = _section(record.manifest, "questions")
        lines += [[index, *_cell_line(row, known, strings, limit)] for row in record.rows]
    timing = ("prefill_s", "first_token_s", "total_s")
    columns = ["run", *_PLAIN, *_SHARED, *_MEMORY, *timing, "source", "answer", "reasoning", "expected", "question"]
    shared = [*_SHARED, "source"]
    names = [record.path.name for record in records]
    return {"columns": columns, "shared": shared, "strings": list(strings), "runs": names, "cells": lines}


def _texts(row: Row) -> tuple[str, ...]:
    return (row.answer, row.reasoning, row.why, row.error or "", *row.expected)


def _text_limit(texts: Sequence[str]) -> int:
    """The longest text to show, halved until all together keep to the budget."""
    limit = _LONGEST_TEXT
    while (
        limit > _SHORTEST_TEXT and sum(len(_short(t, limit).encode("utf-8", "replace")) for t in texts) > _TEXT_BUDGET
    ):
        limit //= 2
    return limit


def _cell_line(row: Row, questions: Mapping[str, Any], strings: dict[str, int], limit: int) -> list[Any]:
    def number(text: str | None) -> int:
        return strings.setdefault(_short(text or "", limit), len(strings))

    memory, timing = row.kv_memory, row.timing
    return [
        *(_number(getattr(row, name)) for name in _PLAIN),
        *(number(getattr(row, name)) for name in _SHARED),
        *(getattr(memory, name) for name in _MEMORY),
        *(_number(value) for value in (timing.prefill_s, timing.first_token_s, timing.total_s)),
        number(memory.source),
        _short(row.answer, limit),
        _short(row.reasoning, limit),
        [_short(text, limit) for text in row.expected],
        _short(str(questions.get(row.pair_id) or ""), limit),
    ]


def _number(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return round(value, 6) if math.isfinite(value) else None


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… (cut; whole in rows.jsonl)"


def _embedded(data: Mapping[str, Any]) -> str:
    """JSON that can stand inside a script element: nothing in it can close the element or start a comment."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
