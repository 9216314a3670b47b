"""Depth by length: one KV setting as a grid of cells, each with its share and interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niah.grid import is_off
from niah.stats.clustered import LEANING, clustered_interval, contexts_of, is_assumed
from niah.stats.intervals import Interval
from niah.stats.power import MIN_CONTEXTS
from niah.store.read import RunRecord, newest
from niah.store.schema import Row

FEW_TRIALS = 5


ASSUMED_NOTE = (
    f"Those over fewer than {MIN_CONTEXTS} texts assume that answers of one text are correlated by {LEANING:g}."
)


BROKEN_LABEL = "BROKEN: canary failed"


OFF_LABEL = "needle not at its depth"


@dataclass(frozen=True, slots=True)
class CellSummary:
    """What the trials of one square of the grid, or of several, came to.

    Attributes:
        hits: answered and right.
        trials: all that were asked, whatever became of them.
        answered, failed, truncated, refused: outcomes; they add up to ``trials``.
        mean_logprob: of the expected answer, natural, over answered trials that have it.
        interval: 95 % of ``hits`` in ``answered``, robust to questions of one text failing together; with one question
            a text it is Wilson's.
        depth_real: mean of the depths really built, 0–1.
        contexts: texts (length, trial) that the answered trials lie in.
    """

    hits: int
    trials: int
    answered: int
    failed: int
    truncated: int
    refused: int
    mean_logprob: float | None
    interval: Interval
    depth_real: float | None = None
    contexts: int = 0

    @property
    def share(self) -> float | None:
        """Accuracy over answered trials; None when none was answered."""
        return self.hits / self.answered if self.answered else None

    @property
    def few(self) -> bool:
        """Whether there is an answer, but fewer than five."""
        return 0 < self.answered < FEW_TRIALS

    @property
    def is_assumed(self) -> bool:
        """Whether the interval takes for granted how far questions of one text fail together: too few texts to see."""
        return is_assumed(self.contexts, self.answered)


@dataclass(frozen=True, slots=True)
class Grid:
    """One KV setting over lengths (tokens, ascending) and depths (0–1, ascending); squares not run are absent."""

    kv: str
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    cells: Mapping[tuple[int, float], CellSummary]
    rows: tuple[Row, ...] = ()
    model: str = ""
    task: str = ""
    broken: bool = False

    def at_length(self, length: int) -> CellSummary:
        """All depths of one length together."""
        return summarize(row for row in self.rows if row.length == length)

    def at_depth(self, depth: float) -> CellSummary:
        """All lengths of one depth together."""
        return summarize(row for row in self.rows if row.depth == depth)

    def total(self) -> CellSummary:
        """The whole grid together."""
        return summarize(self.rows)

    def off_depth(self, length: int, depth: float) -> float | None:
        """Where the needles of a square lie in the mean, if that is not where they were asked."""
        cell = self.cells.get((length, depth))
        return cell.depth_real if cell is not None and is_off(depth, cell.depth_real) else None

    def depth_label(self, depth: float) -> str:
        """A depth in percent for the axis, with the real one where no length has its needles at the asked one."""
        label = f"{depth * 100:.3g}"
        squares = [length for length in self.lengths if (length, depth) in self.cells]
        off = [real for length in squares if (real := self.off_depth(length, depth)) is not None]
        mean = math.fsum(off) / len(off) if off else None
        is_whole = mean is not None and len(off) == len(squares) and is_off(depth, mean)
        return f"{label}→{100 * mean:.3g}" if mean is not None and is_whole else label

    @property
    def title(self) -> str:
        """Model · KV setting · task · answered trials."""
        parts = [self.model, self.kv, self.task, f"n = {self.total().answered:,}"]
        return " · ".join(part for part in parts if part)


def summarize(rows: Iterable[Row]) -> CellSummary:
    """Counts of some rows. Only answered ones are right or wrong."""
    kept = list(rows)
    outcomes = [row.outcome for row in kept]
    answered = [row for row in kept if row.outcome == "answered"]
    hits = sum(row.correct is True for row in answered)
    contexts = contexts_of(answered)
    return CellSummary(
        hits=hits,
        trials=len(kept),
        answered=len(answered),
        failed=outcomes.count("failed"),
        truncated=outcomes.count("truncated"),
        refused=outcomes.count("refused"),
        mean_logprob=_mean([row.logprob for row in answered if row.logprob is not None]),
        interval=clustered_interval(contexts),
        depth_real=_mean([row.depth_real for row in kept if row.depth_real is not None]),
        contexts=len(contexts),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def build_grid(
    rows: Iterable[Row],
    kv: str,
    *,
    broken: bool = False,
    lengths: Iterable[int] = (),
    depths: Iterable[float] = (),
) -> Grid:
    """The grid of one KV setting.

    Args:
        rows: rows of all settings, so that every setting gets the same axes; a repeated cell is counted once.
        broken: whether the setting failed its canary.
        lengths, depths: further values of the axes, for squares that were planned but not run.
    """
    counted = list(newest(rows).values())
    own = tuple(row for row in counted if row.kv == kv)
    squares: dict[tuple[int, float], list[Row]] = {}
    for row in own:
        squares.setdefault((row.length, row.depth), []).append(row)
    return Grid(
        kv=kv,
        lengths=tuple(sorted({*lengths, *(row.length for row in counted)})),
        depths=tuple(sorted({*depths, *(row.depth for row in counted)})),
        cells={square: summarize(members) for square, members in sorted(squares.items())},
        rows=own,
        model=", ".join(sorted({row.model for row in own})),
        task=", ".join(sorted({row.task for row in own})),
        broken=broken,
    )


def record_grid(record: RunRecord, kv: str) -> Grid:
    """The grid of one setting of a run, with the canary's verdict and the axes that were asked for."""
    asked = record.manifest.get("asked")
    planned = asked if isinstance(asked, Mapping) else {}
    return build_grid(
        record.rows,
        kv,
        broken=record.broken(kv),
        lengths=[int(v) for v in _numbers(planned.get("lengths")) if v >= 1],
        depths=[v for v in _numbers(planned.get("depths")) if 0 <= v <= 1],
    )


def _numbers(value: Any) -> list[float]:
    """The numbers of a list of numbers; nothing where the manifest has the user's text instead."""
    if not isinstance(value, list) or not all(type(v) in (int, float) for v in value):
        return []
    return value
