"""Effective context length: how far a setting can be relied on, at every depth, beyond doubt."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from niah.stats.intervals import Interval, wilson
from niah.store.read import newest
from niah.store.schema import Row
from niah.types import JSON

BAR = 0.85


@dataclass(frozen=True, slots=True)
class Limit:
    """The cell that ends the effective length: accuracy and its Wilson 95 % interval over ``trials`` answers."""

    length: int
    depth: float
    hits: int
    trials: int
    ci: Interval


@dataclass(frozen=True, slots=True)
class EffectiveLength:
    """The longest length (tokens) that holds the bar.

    Attributes:
        length: lower bounds at this and every shorter length are above ``bar`` at every depth; None when not even the
            shortest is.
        likely: the same by the shares themselves: an indication, not a claim.
        bar: share that must be answered.
        limit: the worst cell of the first length that fails; None when all lengths hold.
        trials_needed: answers a cell needs before even a full score can clear the bar.
    """

    length: int | None
    likely: int | None
    bar: float
    limit: Limit | None
    trials_needed: int

    @property
    def too_few(self) -> bool:
        """Whether the limiting cell has so few trials that no score could have cleared the bar."""
        return self.limit is not None and self.limit.trials < self.trials_needed

    def to_json(self) -> dict[str, JSON]:
        limit = None
        if self.limit is not None:
            limit = {
                "length": self.limit.length,
                "depth": self.limit.depth,
                "hits": self.limit.hits,
                "trials": self.limit.trials,
                "ci": [self.limit.ci.low, self.limit.ci.high],
            }
        return {
            "length": self.length,
            "likely": self.likely,
            "bar": self.bar,
            "limit": limit,
            "trials_needed": self.trials_needed,
            "too_few": self.too_few,
        }


def effective_length(rows: Iterable[Row], bar: float = BAR) -> EffectiveLength:
    """Effective length of one setting. A cell without an answer holds nothing: it ends the length like a miss.

    Raises:
        ValueError: the bar is not between 0 and 1, both excluded.
    """
    if not 0 < bar < 1:
        raise ValueError(f"bar must be between 0 and 1, both excluded, not {bar}")
    cells: dict[int, dict[float, list[bool]]] = {}
    for row in newest(rows).values():
        answers = cells.setdefault(row.length, {}).setdefault(row.depth, [])
        if row.outcome == "answered":
            answers.append(row.correct is True)
    length = likely = limit = None
    for tokens in sorted(cells):
        limits = [_limit(tokens, depth, answers) for depth, answers in sorted(cells[tokens].items())]
        worst = min(limits, key=lambda cell: cell.ci.low)
        if limit is None and worst.ci.low > bar:
            length = tokens
        elif limit is None:
            limit = worst
        if all(cell.trials and cell.hits / cell.trials > bar for cell in limits) and likely == _before(cells, tokens):
            likely = tokens
    return EffectiveLength(length, likely, bar, limit, trials_needed(bar))


def _before(cells: Iterable[int], tokens: int) -> int | None:
    return max((length for length in cells if length < tokens), default=None)


def _limit(length: int, depth: float, answers: list[bool]) -> Limit:
    hits, trials = sum(answers), len(answers)
    return Limit(length, depth, hits, trials, wilson(hits, trials))


def trials_needed(bar: float) -> int:
    """Fewest trials of which a full score puts Wilson's lower bound, n / (n + z²), above the bar."""
    z = NormalDist().inv_cdf(0.975)
    return math.floor(bar * z * z / (1 - bar)) + 1
