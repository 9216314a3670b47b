"""What the run says, in words: each KV setting against the reference, with interval and caveats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from niah.errors import ConfigError
from niah.grid import counted
from niah.report.data.comparison import Compared, compare_records
from niah.report.data.difference import points
from niah.report.text.comparison import nats_interval, p_text, points_interval, signed_nats, verdict_words
from niah.stats.compare import Comparison
from niah.stats.effective import EffectiveLength, effective_length
from niah.stats.intervals import Interval
from niah.stats.pairs import join_rows
from niah.stats.power import MIN_CONTEXTS
from niah.stats.ushape import Contrast, ushape, ushape_change
from niah.store.read import RunRecord

_TONES = {"better": "good", "equivalent": "good", "worse": "bad", "too few to say": "plain"}


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """One comparison as a line of the verdict's table; ``tone`` is good, bad or plain."""

    name: str
    verdict: str
    tone: str
    change: str
    interval: str
    pairs: str
    moved: str
    p: str
    logprob: str
    caveats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReachLine:
    """How far a setting holds and where in the text it is weak, as a line of a table."""

    name: str
    length: str
    why: str
    index: str
    primacy: str
    recency: str
    change: str


def setting_comparisons(record: RunRecord) -> list[Comparison]:
    """Every other setting of a run against its reference, as ``niah compare`` judges it; none without a reference."""
    if record.reference is None:
        return []
    try:
        return list(compare_records([record]).comparisons)
    except ConfigError:
        return []  # the reference alone, or nothing answered under both


def run_comparisons(base: RunRecord, record: RunRecord) -> tuple[list[Comparison], list[str]]:
    """A later run against the first one, setting by setting, and notes on what could not be compared and why."""
    try:
        found = compare_records([base, record])
    except ConfigError as err:
        return [], [str(err)]
    # the page says once which run is meant
    named = [replace(item.total, new=_across_name(item)) for item in found.items]
    return named, [f"{note}." for note in found.notes]


def _across_name(item: Compared) -> str:
    return item.new.kv if item.new.kv == item.base.kv else f"{item.new.kv} against {item.base.kv}"


def headline(comparisons: Sequence[Comparison], against: str, apart: Sequence[str] = ()) -> str:
    """All verdicts in one sentence; empty when nothing was compared.

    Args:
        apart: settings without a pair.
    """
    judged = [c for c in comparisons if c.pairs and not c.broken and c.verdict != "too few to say"]
    parts = [f"{c.new} is {_judged(c)}" for c in judged]
    undecided = [c for c in comparisons if c.pairs and not c.broken and c.verdict == "too few to say"]
    short = [c for c in undecided if c.few_contexts]
    if short:
        least, most = min(c.contexts for c in short), max(c.contexts for c in short)
        count = f"{least}" if least == most else f"{least} to {most}"
        names = listed([c.new for c in short])
        parts.append(f"too few contexts ({count}, and a verdict needs {MIN_CONTEXTS}) to say for {names}")
    open_ones = [c for c in undecided if not c.few_contexts]
    if open_ones:
        least = min(c.pairs for c in open_ones)
        most = max(c.pairs for c in open_ones)
        count = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        parts.append(f"too few pairs ({count}) to say for {listed([c.new for c in open_ones])}")
    broken = [c.new for c in comparisons if c.broken]
    if broken:
        parts.append(f"{listed(broken)} {'is' if len(broken) == 1 else 'are'} broken and not judged")
    if apart:
        parts.append(f"{listed(apart)} {'has' if len(apart) == 1 else 'have'} no pair with it")
    if not parts:
        return ""
    joined = parts[0] if len(parts) == 1 else f"{'; '.join(parts[:-1])}; {parts[-1]}"
    return f"Against {against}: {joined}."


def hidden_damage(comparisons: Sequence[Comparison]) -> str:
    """A sentence on settings whose log-probability fell beyond doubt while accuracy says nothing; empty when none."""
    found = [c for c in comparisons if c.logprob_lower and c.verdict != "worse" and not c.broken]
    if not found:
        return ""
    parts = [f"{c.new} by {_nats(c.logprob_delta, c.logprob_ci)}" for c in found]
    return f"The right answer became less likely beyond doubt, where accuracy does not show it: {listed(parts)}."


def _judged(comparison: Comparison) -> str:
    delta, interval = comparison.delta or 0.0, points_interval(comparison.ci)
    if comparison.verdict == "equivalent":
        return f"equivalent ({_points(delta)} points, 95 % interval {interval})"
    return f"{comparison.verdict} by {abs(delta) * 100:.1f} points (95 % interval {interval})"


def verdict_lines(comparisons: Sequence[Comparison]) -> list[VerdictLine]:
    """The verdict's table."""
    return [
        VerdictLine(
            name=c.new,
            verdict="broken" if c.broken else verdict_words(c),
            tone="bad" if c.broken else _TONES[c.verdict],
            change="–" if c.delta is None else f"{_points(c.delta)} pt",
            interval=points_interval(c.ci),
            pairs=f"{c.pairs:,} in {counted(c.contexts, 'text')}",
            moved=f"{c.lost:,} lost, {c.gained:,} gained",
            p=p_text(c.p_holm),
            logprob=_nats(c.logprob_delta, c.logprob_ci),
            caveats=c.caveats,
        )
        for c in comparisons
    ]


def reach_lines(record: RunRecord) -> list[ReachLine]:
    """Effective length and the shape over depth, one line a setting that was answered and is not broken."""
    lines = []
    reference = record.reference
    base = [row for row in record.rows if row.kv == reference]
    for kv in record.kvs():
        rows = [row for row in record.rows if row.kv == kv]
        if record.broken(kv) or not any(row.outcome == "answered" for row in rows):
            continue
        reach, shape = effective_length(rows), ushape(rows)
        change = ushape_change(join_rows(base, rows)).index if base and kv != reference else None
        length, why = _reach_words(reach)
        shapes = (_contrast(part) for part in (shape.index, shape.primacy, shape.recency, change))
        lines.append(ReachLine(kv, length, why, *shapes))
    return lines


def _reach_words(reach: EffectiveLength) -> tuple[str, str]:
    limit = reach.limit
    length = "not even the shortest" if reach.length is None else f"{reach.length:,} tokens"
    if limit is None:
        return length, "every length asked holds"
    where = f"{limit.length:,} tokens at depth {limit.depth * 100:.4g} %: {limit.hits} of {limit.trials} right"
    if reach.too_few:
        likely = "" if reach.likely is None else f"; by the shares alone {reach.likely:,} tokens"
        return "too few to say", f"{where}, and a cell needs {reach.trials_needed} answers to show it{likely}"
    return length, f"ends at {where}"


def _contrast(part: Contrast | None) -> str:
    return "–" if part is None else f"{points(part.value)} ({points(part.ci.low)} to {points(part.ci.high)})"


def _points(share: float) -> str:
    rounded = round(share * 100, 1)
    return f"{rounded:+.1f}".replace("-", "−") if rounded else "0"


def _nats(delta: float | None, interval: Interval | None) -> str:
    if delta is None:
        return "–"
    return f"{signed_nats(delta)} nats" + ("" if interval is None else f" ({nats_interval(interval)})")


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
