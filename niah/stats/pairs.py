"""Rows of two settings joined into pairs: the same needle in the same text, answered under both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from niah.store.read import newest
from niah.store.schema import Row

# where a needle lies: outer quarters against the inner half
BANDS = ("start", "middle", "end")
_EDGE = 0.25


def band(depth: float) -> str:
    """``start`` (below 0.25), ``middle`` (0.25 to 0.75) or ``end`` of the text, by asked depth."""
    return "start" if depth < _EDGE else "end" if depth > 1 - _EDGE else "middle"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Columns of equal length, one entry a pair, ordered by length, trial and depth.

    Attributes:
        lengths: tokens. depths: asked, 0–1. contexts: 0 to ``context_count`` - 1; one for each (length, trial).
        base, new: right or wrong under the two settings.
        logprob_deltas: new minus base, natural log of the whole expected answer; NaN where either is unknown.
        base_only, new_only: cells that the other side was never asked.
        unanswered: cells that both were asked, but that at least one did not answer: not pairs, never counted wrong.
        same_cells: pairs whose two rows are one and the same measurement.
    """

    lengths: NDArray[np.int64]
    depths: NDArray[np.float64]
    contexts: NDArray[np.int64]
    base: NDArray[np.bool_]
    new: NDArray[np.bool_]
    logprob_deltas: NDArray[np.float64]
    base_only: int = 0
    new_only: int = 0
    unanswered: int = 0
    same_cells: int = 0

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def context_count(self) -> int:
        return int(self.contexts[-1]) + 1 if len(self) else 0

    @property
    def lost(self) -> int:
        """Pairs that only the base got right."""
        return int((self.base & ~self.new).sum())

    @property
    def gained(self) -> int:
        """Pairs that only the new setting got right."""
        return int((self.new & ~self.base).sum())

    def where(self, mask: NDArray[np.bool_]) -> Pairs:
        """The pairs that ``mask`` (``[pairs]``) picks; contexts are numbered anew."""
        _, contexts = np.unique(self.contexts[mask], return_inverse=True)
        return Pairs(
            self.lengths[mask],
            self.depths[mask],
            contexts.astype(np.int64),
            self.base[mask],
            self.new[mask],
            self.logprob_deltas[mask],
        )

    def by_length(self) -> Iterator[tuple[int, Pairs]]:
        """Pairs of each length, ascending."""
        for length in np.unique(self.lengths):
            yield int(length), self.where(self.lengths == length)

    def by_band(self) -> Iterator[tuple[str, Pairs]]:
        """Pairs of each depth band that has some, from start to end."""
        bands = np.array([band(depth) for depth in self.depths])
        for name in BANDS:
            if (bands == name).any():
                yield name, self.where(bands == name)

    def by_cell(self) -> Iterator[tuple[tuple[int, float], Pairs]]:
        """Pairs of each (length, depth), in order."""
        for length, part in self.by_length():
            for depth in np.unique(part.depths):
                yield (length, float(depth)), part.where(part.depths == depth)


def join_rows(base: Iterable[Row], new: Iterable[Row]) -> Pairs:
    """Join two settings' rows on ``pair_id``. Only cells that both answered become pairs.

    Args:
        base, new: rows of one setting each; of a cell that is there twice the newest answered row counts.
    """
    left, right = _by_pair(base), _by_pair(new)
    common = left.keys() & right.keys()
    both = [(left[p], right[p]) for p in common if left[p].outcome == right[p].outcome == "answered"]
    both.sort(key=lambda rows: (rows[0].length, rows[0].trial, rows[0].depth, rows[0].pair_id))
    keys = [(old.length, old.trial) for old, _ in both]
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return Pairs(
        lengths=np.array([old.length for old, _ in both], dtype=np.int64),
        depths=np.array([old.depth for old, _ in both], dtype=np.float64),
        contexts=np.array([number[key] for key in keys], dtype=np.int64),
        base=np.array([old.correct is True for old, _ in both], dtype=bool),
        new=np.array([row.correct is True for _, row in both], dtype=bool),
        logprob_deltas=np.array([_logprob_delta(old, row) for old, row in both], dtype=np.float64),
        base_only=len(left) - len(common),
        new_only=len(right) - len(common),
        unanswered=len(common) - len(both),
        same_cells=sum(old.cell_id == row.cell_id for old, row in both),
    )


def _by_pair(rows: Iterable[Row]) -> dict[str, Row]:
    return {row.pair_id: row for row in newest(rows).values()}


def _logprob_delta(old: Row, row: Row) -> float:
    return float("nan") if old.logprob is None or row.logprob is None else row.logprob - old.logprob
