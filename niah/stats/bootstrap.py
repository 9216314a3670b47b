"""Bootstrap over contexts: questions of one context stand or fall together, so contexts are drawn, not questions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from niah.stats.intervals import Interval

Floats: TypeAlias = NDArray[np.float64]
DRAWS = 4_000
# a fixed seed: the same rows must give the same verdict everywhere
SEED = 20_240_229
_CHUNK = 2_000_000
_KEPT_CONTEXTS = 250


def context_sums(values: Floats, contexts: NDArray[np.int64], count: int) -> Floats:
    """Sum of each column within each context.

    Args:
        values: ``[observations, columns]``.
        contexts: ``[observations]``, 0 to ``count`` - 1.

    Returns:
        ``[count, columns]``.
    """
    return np.stack([np.bincount(contexts, weights=column, minlength=count) for column in values.T], axis=1)


def resampled(sums: Floats, draws: int = DRAWS, seed: int = SEED) -> Floats:
    """Totals over contexts that are drawn with replacement, as many as there are.

    Args:
        sums: ``[contexts, columns]``.

    Returns:
        ``[draws, columns]``.
    """
    count = len(sums)
    if count <= _KEPT_CONTEXTS:
        return _kept_weights(count, draws, seed) @ sums
    return np.concatenate([weights @ sums for weights in _weights(count, draws, seed)])


@lru_cache(maxsize=4)
def _kept_weights(count: int, draws: int, seed: int) -> Floats:
    """All weights at once: comparisons of a run have the same few numbers of contexts again and again."""
    return np.concatenate(list(_weights(count, draws, seed)))


def _weights(count: int, draws: int, seed: int) -> Iterator[Floats]:
    """How often each context is drawn, ``[some draws, count]`` at a time."""
    rng = np.random.default_rng(seed)
    rows = max(1, _CHUNK // max(1, count))
    for start in range(0, draws, rows):
        size = min(rows, draws - start)
        picked = rng.integers(0, count, (size, count)) + np.arange(size)[:, None] * count
        yield np.bincount(picked.ravel(), minlength=size * count).reshape(size, count).astype(np.float64)


def expanded_interval(estimates: Any, contexts: int, confidence: float = 0.95) -> Interval:
    """Percentile interval widened for few contexts (T. Hesterberg, The American Statistician 69, 2015, section 5).

    The bootstrap's spread is too small by √((n - 1) / n) and the normal quantile is too small for n - 1 degrees of
    freedom; both are made good by taking percentiles further out. NaN draws are left out.

    Raises:
        ValueError: fewer than two contexts, or no draw.
    """
    from scipy.special import stdtrit

    if contexts < 2:
        raise ValueError("a bootstrap over contexts needs at least two of them")
    values = np.asarray(estimates, dtype=float)
    values = values[~np.isnan(values)]
    if not len(values):
        raise ValueError("no draw has a value")
    reach = float(stdtrit(contexts - 1, (1 + confidence) / 2)) * math.sqrt(contexts / (contexts - 1))
    tail = NormalDist().cdf(-reach)
    low, high = np.quantile(values, [tail, 1 - tail])
    return Interval(float(low), float(high))


def ratio_interval(sums: Floats, confidence: float = 0.95) -> Interval:
    """t interval of total value over total count, from context sums (linearised: Cochran, Sampling Techniques, 6.4).

    Args:
        sums: ``[contexts, 2]``: values and counts; at least two contexts.
    """
    from scipy.special import stdtrit

    mean, error = _ratio(sums)
    reach = float(stdtrit(len(sums) - 1, (1 + confidence) / 2)) * error
    return Interval(mean - reach, mean + reach)


def ratio_p(sums: Floats) -> float:
    """Two-sided p-value of the same t-test against a mean of zero; 1 when nothing changed anywhere."""
    from scipy.special import stdtr

    mean, error = _ratio(sums)
    if not mean:
        return 1.0
    return float(2 * stdtr(len(sums) - 1, -abs(mean) / error)) if error else 0.0


def _ratio(sums: Floats) -> tuple[float, float]:
    """The ratio and its standard error."""
    contexts = len(sums)
    total = float(sums[:, 1].sum())
    mean = float(sums[:, 0].sum()) / total
    residuals = sums[:, 0] - mean * sums[:, 1]
    return mean, math.sqrt(contexts / (contexts - 1) * float((residuals**2).sum())) / total


def hull(*intervals: Interval) -> Interval:
    """The smallest interval that holds all of them."""
    return Interval(min(i.low for i in intervals), max(i.high for i in intervals))
