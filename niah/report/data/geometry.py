"""Squares of a depth by length map on axes that are logarithmic in length, and which ticks are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_MOST_TICKS = 16


def edges(centers: Sequence[float]) -> list[float]:
    """Borders of adjoining squares around ascending centers, halfway between neighbors: one more than centers."""
    if len(centers) == 1:
        return [centers[0] - 0.5, centers[0] + 0.5]
    middles = [(a + b) / 2 for a, b in pairwise(centers)]
    return [2 * centers[0] - middles[0], *middles, 2 * centers[-1] - middles[-1]]


@dataclass(frozen=True, slots=True)
class Box:
    """Borders of one square in the axes' data: tokens and percent."""

    left: float
    right: float
    top: float
    bottom: float

    def at(self, across: float, down: float) -> tuple[float, float]:
        """A point inside, 0–1 from the left and from the top, on the log scale of the x axis."""
        return self.left * (self.right / self.left) ** across, self.top + (self.bottom - self.top) * down


def square(lengths: Sequence[int], depths: Sequence[float], length: int, depth: float) -> Box:
    """Where one square of a grid lies."""
    across, down = _x_edges(lengths), _y_edges(depths)
    column, row = lengths.index(length), depths.index(depth)
    return Box(across[column], across[column + 1], down[row], down[row + 1])


def thinned(values: Sequence[float]) -> list[float]:
    """At most sixteen of the values, evenly taken, for labels that do not run into each other."""
    step = math.ceil(len(values) / _MOST_TICKS)
    return list(values[::step])


def _x_edges(lengths: Sequence[int]) -> list[float]:
    return [2.0**place for place in edges([math.log2(length) for length in lengths])]


def _y_edges(depths: Sequence[float]) -> list[float]:
    if len(depths) == 1:
        return [0.0, 100.0]
    return edges([100 * depth for depth in depths])
