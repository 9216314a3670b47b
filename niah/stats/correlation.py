"""Correlation of changes within one text: how much a text's further questions are worth."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from niah.stats.pairs import Pairs

_HIGHEST = 0.9


def changes_together(pairs: Pairs) -> float | None:
    """Intraclass correlation of the paired changes (lost -1, gained +1, none 0) of one context, 0 to 0.9.

    The one-way analysis-of-variance estimate for groups of unequal size (Donner, Int Stat Rev 54, 1986); below 0 it
    is 0. None where nothing can be seen: fewer than two contexts, one question each, or no change at all.
    """
    return changes_together_over([pairs])


def changes_together_over(comparisons: Iterable[Pairs]) -> float | None:
    """The same as a mean over several comparisons, each with the weight of its contexts; None where none shows it."""
    known = [(found, pairs.context_count - 1) for pairs in comparisons if (found := _estimate(pairs)) is not None]
    if not known:
        return None
    mean = sum(found * weight for found, weight in known) / sum(weight for _, weight in known)
    return min(_HIGHEST, max(0.0, mean))


def _estimate(pairs: Pairs) -> float | None:
    contexts, count = pairs.context_count, len(pairs)
    deltas = pairs.new.astype(np.float64) - pairs.base.astype(np.float64)
    if contexts < 2 or count == contexts or deltas.min() == deltas.max():
        return None
    sizes = np.bincount(pairs.contexts).astype(np.float64)
    means = np.bincount(pairs.contexts, weights=deltas) / sizes
    between = float((sizes * (means - deltas.mean()) ** 2).sum()) / (contexts - 1)
    within = float(((deltas - means[pairs.contexts]) ** 2).sum()) / (count - contexts)
    typical = (count - float((sizes**2).sum()) / count) / (contexts - 1)
    total = between + (typical - 1) * within
    return (between - within) / total if total > 0 else None
