"""Lost in the middle, as numbers: ends minus middle, and how accuracy slopes away from the start and up to the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from niah.stats.bootstrap import Floats, context_sums, expanded_interval, hull, resampled
from niah.stats.intervals import Interval, wilson
from niah.stats.paired import paired_interval
from niah.stats.pairs import BANDS, Pairs, band
from niah.store.read import newest
from niah.store.schema import Row
from niah.types import JSON

_HALF = 0.5
Mask: TypeAlias = NDArray[np.bool_]
_INDEX_WEIGHTS = {"start": 0.5, "middle": -1.0, "end": 0.5}


@dataclass(frozen=True, slots=True)
class Contrast:
    """A weighted sum of shares with its 95 % interval."""

    value: float
    ci: Interval

    def to_json(self) -> dict[str, JSON]:
        return {"value": self.value, "ci": [self.ci.low, self.ci.high]}


@dataclass(frozen=True, slots=True)
class UShape:
    """How accuracy depends on depth. Each is None where the depths asked do not cover it.

    Attributes:
        index: mean of the two ends minus the middle (depths below 0.25, above 0.75, and between), as a share: 0.2 is
            lost in the middle by 20 points, 0 is flat, below 0 the middle is found best.
        primacy: slope over the first half of the text, in shares per whole text: below 0, it falls from the start.
        recency: slope over the second half: above 0, it rises towards the end.
    """

    index: Contrast | None
    primacy: Contrast | None
    recency: Contrast | None

    def to_json(self) -> dict[str, JSON]:
        parts = {"index": self.index, "primacy": self.primacy, "recency": self.recency}
        return {name: None if part is None else part.to_json() for name, part in parts.items()}


@dataclass(frozen=True, eq=False)
class _Points:
    """Observations as columns; ``floor`` bounds the mean of some of them when contexts alone would say too much.

    ``base`` holds, for changes, the shares that they start from.
    """

    depths: Floats
    contexts: NDArray[np.int64]
    values: Floats
    floor: Callable[[_Points, Mask], Interval]
    base: Floats | None = None


def ushape(rows: Iterable[Row]) -> UShape:
    """The shape of one setting's accuracy over depth; give the rows of one length, or of all.

    Only answered rows count. Intervals hold both the bootstrap over contexts (length, trial) and the interval that
    Wilson's ones for the single shares add up to (MOVER: Zou and Donner, Stat Med 27, 2008), so that a full score
    from few trials is not called certain; and nothing that no shares could add up to.
    """
    answered = [row for row in newest(rows).values() if row.outcome == "answered"]
    keys = [(row.length, row.trial) for row in answered]
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return _shape(
        _Points(
            np.array([row.depth for row in answered], dtype=np.float64),
            np.array([number[key] for key in keys], dtype=np.int64),
            np.array([row.correct is True for row in answered], dtype=np.float64),
            _share_floor,
        )
    )


def ushape_change(pairs: Pairs) -> UShape:
    """The change of each figure, new minus base, over pairs: above 0 in ``index``, the new setting is more U-shaped."""
    deltas = pairs.new.astype(np.float64) - pairs.base.astype(np.float64)
    return _shape(
        _Points(
            pairs.depths,
            pairs.contexts,
            deltas,
            _change_floor,
            base=pairs.base.astype(np.float64),
        )
    )


def _share_floor(points: _Points, mask: Mask) -> Interval:
    part = points.values[mask]
    return wilson(int(part.sum()), len(part))


def _change_floor(points: _Points, mask: Mask) -> Interval:
    part = points.values[mask]
    return paired_interval(int((part < 0).sum()), int((part > 0).sum()), len(part))


def ushapes(rows: Iterable[Row]) -> dict[int | None, UShape]:
    """Shapes by length, and of all lengths together under None."""
    kept = list(rows)
    lengths = sorted({row.length for row in kept})
    found: dict[int | None, UShape] = {length: ushape(r for r in kept if r.length == length) for length in lengths}
    return {**found, None: ushape(kept)}


def ushape_changes(pairs: Pairs) -> dict[int | None, UShape]:
    """Changes by length, and over all lengths together under None."""
    found: dict[int | None, UShape] = {length: ushape_change(part) for length, part in pairs.by_length()}
    return {**found, None: ushape_change(pairs)}


def _shape(points: _Points) -> UShape:
    bands = np.array([band(depth) for depth in points.depths])
    depths = [float(depth) for depth in np.unique(points.depths)]
    return UShape(
        index=_contrast(points, [bands == name for name in BANDS], [_INDEX_WEIGHTS[name] for name in BANDS]),
        primacy=_slope(points, [depth for depth in depths if depth <= _HALF]),
        recency=_slope(points, [depth for depth in depths if depth >= _HALF]),
    )


def _slope(points: _Points, depths: Sequence[float]) -> Contrast | None:
    """Least squares through the mean of each depth, every depth with the same weight."""
    if len(depths) < 2:
        return None
    centered = np.array(depths) - np.mean(depths)
    return _contrast(points, [points.depths == depth for depth in depths], centered / (centered**2).sum())


def _contrast(points: _Points, groups: Sequence[Mask], weights: Sequence[float] | Floats) -> Contrast | None:
    """Sum of weight times mean over groups of observations; None when a group is empty."""
    if not all(mask.any() for mask in groups):
        return None
    means = np.array([points.values[mask].mean() for mask in groups])
    value = float(np.dot(weights, means))
    floor = _mover(value, means, weights, [points.floor(points, mask) for mask in groups])
    possible = _possible(points, groups, np.asarray(weights, dtype=np.float64))
    contexts = int(points.contexts.max()) + 1
    if contexts < 2:
        return Contrast(value, floor.within(possible.low, possible.high))
    columns = [column for mask in groups for column in (points.values * mask, mask.astype(np.float64))]
    totals = resampled(context_sums(np.stack(columns, axis=1), points.contexts, contexts))
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = (totals[:, 0::2] / totals[:, 1::2]) @ np.asarray(weights)
    return Contrast(value, hull(floor, expanded_interval(draws, contexts)).within(possible.low, possible.high))


def _possible(points: _Points, groups: Sequence[Mask], weights: Floats) -> Interval:
    """The least and the greatest that a weighted sum of shares can be; of their changes, from where they are."""
    least, most = float(weights[weights < 0].sum()), float(weights[weights > 0].sum())
    if points.base is None:
        return Interval(least, most)
    before = replace(points, values=points.base, base=None)
    means = np.array([points.base[mask].mean() for mask in groups])
    value = float(np.dot(weights, means))
    start = _mover(value, means, weights, [_share_floor(before, mask) for mask in groups]).within(least, most)
    return Interval(least - start.high, most - start.low)


def _mover(value: float, means: Floats, weights: Sequence[float] | Floats, intervals: Sequence[Interval]) -> Interval:
    """Interval of a weighted sum from those of its terms."""
    below = above = 0.0
    for mean, weight, interval in zip(means, weights, intervals, strict=True):
        down, up = (interval.low, interval.high) if weight > 0 else (interval.high, interval.low)
        below += (weight * (mean - down)) ** 2
        above += (weight * (up - mean)) ** 2
    return Interval(value - float(np.sqrt(below)), value + float(np.sqrt(above)))
