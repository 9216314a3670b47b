"""One run as the report shows it: sentences, settings, pictures and facts, ready to be written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niah.report.data.asked import SettingLine, setting_lines, value_text
from niah.report.data.difference import record_differences
from niah.report.data.grid import record_grid
from niah.report.data.paging import paging_waste
from niah.report.data.summary import (
    FailureKind,
    Mismatch,
    SettingSummary,
    failure_kinds,
    memory_points,
    mismatches,
    summaries,
    summary_sentences,
)
from niah.report.page.chart import Chart
from niah.report.page.curves import cost_chart, memory_chart, score_chart, time_charts
from niah.report.page.logprob import logprob_change_map, logprob_map
from niah.report.page.monitor import monitor_charts
from niah.report.page.svg import Map, difference_picture, grid_map
from niah.report.page.tradeoff import tradeoff_chart
from niah.report.palette import Palette
from niah.report.text.tables import summary_line
from niah.report.text.verdict import (
    ReachLine,
    VerdictLine,
    headline,
    hidden_damage,
    reach_lines,
    setting_comparisons,
    verdict_lines,
)
from niah.stats.compare import Comparison
from niah.store.read import RunRecord

_STATUS_WARNINGS = {
    "interrupted": "The run was interrupted.",
    "budget": "The run ended at its budget.",
    "failed": "The run ended with an error.",
    "running": "The run had not ended when this page was made.",
}


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
class FailureLine:
    """Cells without an answer of one kind; ``share`` of the largest kind, for a bar."""

    failure: FailureKind
    share: float


@dataclass(frozen=True, slots=True)
class RunView:
    """One run as the report shows it, all text and numbers ready."""

    name: str
    title: str
    subtitle: str
    headline: str
    sentences: list[str]
    settings: list[SettingView]
    verdicts: list[VerdictLine]
    reach: list[ReachLine]
    maps: list[Map]
    differences: list[Map]
    logprobs: list[Map]
    logprob_changes: list[Map]
    over_length: list[Chart]
    memory: Chart | None
    paging: list[str]
    times: list[Chart]
    monitors: list[Chart]
    failures: list[FailureLine]
    mismatches: list[Mismatch]
    facts: list[tuple[str, str]]
    command: str
    warnings: list[str]

    @property
    def differs(self) -> list[str]:
        """Settings of which not everything that was asked is in force."""
        return [setting.summary.kv for setting in self.settings if setting.differs]


def run_view(record: RunRecord, palette: Palette) -> RunView:
    """Everything that the page says of one run."""
    grids = [record_grid(record, kv) for kv in record.kvs()]
    points = [
        (f"{kv} (broken)" if record.broken(kv) else kv, found)
        for kv in record.kvs()
        if (found := memory_points(row for row in record.rows if row.kv == kv))
    ]
    manifest, settings = record.manifest, summaries(record)
    models = sorted({row.model for row in record.rows}) or [_get(manifest, "model", "name") or "no model"]
    comparisons, differences = setting_comparisons(record), record_differences(record)
    failures = failure_kinds(record.rows)
    most = max((failure.cells for failure in failures), default=1)
    return RunView(
        name=record.path.name,
        title=", ".join(models),
        subtitle=" · ".join(_distinct(record, name) for name in ("task", "haystack", "backend") if record.rows),
        headline=_headline(record, settings, comparisons),
        sentences=[*filter(None, [hidden_damage(comparisons)]), *summary_sentences(record)],
        settings=[_setting_view(record, item) for item in settings],
        verdicts=verdict_lines(comparisons),
        reach=reach_lines(record),
        maps=[grid_map(grid, palette) for grid in grids if grid.lengths],
        differences=[difference_picture(difference) for difference in differences],
        logprobs=[drawn for grid in grids if (drawn := logprob_map(grid, palette))],
        logprob_changes=[drawn for difference in differences if (drawn := logprob_change_map(difference))],
        over_length=[found for found in (score_chart(grids), tradeoff_chart(settings)) if found],
        memory=memory_chart(points),
        paging=[waste.sentence() for waste in paging_waste(record)],
        times=[*time_charts(record), *filter(None, [cost_chart(record)])],
        monitors=monitor_charts(record),
        failures=[FailureLine(failure, failure.cells / most) for failure in failures],
        mismatches=mismatches(record),
        facts=_facts(record),
        command=str(manifest.get("command") or ""),
        warnings=_warnings(record),
    )


def _headline(record: RunRecord, settings: Sequence[SettingSummary], comparisons: Sequence[Comparison]) -> str:
    """The verdict in a sentence; without anything to compare, why there is none."""
    if not record.rows:
        return "No cell has been run yet, so there is nothing to say."
    paired = {comparison.new for comparison in comparisons}
    apart = [kv for kv in record.kvs() if comparisons and kv != record.reference and kv not in paired]
    said = headline(comparisons, record.reference or "", apart)
    if said:
        return said
    if record.reference is not None:
        if len(settings) > 1:
            return f"No cell was answered under both {record.reference} and another setting, so nothing is compared."
        return f"Only {record.reference}, the reference, was run: there is nothing to compare it with."
    if len(settings) == 1:
        return f"Only {settings[0].kv} was run, so nothing is compared."
    return "This run has no reference setting, so its settings are not compared with each other."


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
    status = _STATUS_WARNINGS.get(str(record.manifest.get("status")))
    if status:
        found.append(status)
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
    for key in (
        "asked",
        "adaptive",
        "difficulty",
        "model",
        "haystack",
        "tokenizer",
        "hardware",
        "versions",
        "prices",
        "spent",
    ):
        facts += [(f"{key} · {name}", value_text(value)) for name, value in _section(manifest, key).items()]
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
