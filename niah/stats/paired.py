"""Paired comparison of two settings on the same needles: an exact test, and an interval that is wide for few pairs."""

from __future__ import annotations

import math
from statistics import NormalDist

from niah.stats.intervals import Interval

_STEPS = 60


def mcnemar_p(worse: int, better: int) -> float:
    """Two-sided exact McNemar p-value: a binomial test of ``worse`` against ``better`` discordant pairs.

    Pairs are taken as independent; where questions share a context, read it beside a clustered interval.
    """
    from scipy.special import bdtr

    total = worse + better
    if total == 0:
        return 1.0
    return float(min(1.0, 2 * bdtr(min(worse, better), total, 0.5)))


def paired_interval(lost: int, gained: int, pairs: int, confidence: float = 0.95) -> Interval:
    """Score interval of the difference of two paired shares, gained minus lost over pairs (Tango, Stat Med 17, 1998).

    It is the set of true differences that the score test does not reject. Unlike the textbook interval it is never
    empty when no pair differs: n equal pairs leave everything within z² / (n + z²) possible.

    Args:
        lost: pairs that only the first setting got right.
        gained: pairs that only the second setting got right.
        pairs: all pairs; with none, every difference from -1 to 1 is possible.

    Raises:
        ValueError: the counts or the confidence are impossible.
    """
    if min(lost, gained) < 0 or lost + gained > pairs:
        raise ValueError(f"lost and gained must be between 0 and pairs, not {lost} and {gained} of {pairs}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
    return score_interval(lost, gained, pairs, confidence)


def score_interval(lost: float, gained: float, pairs: float, confidence: float) -> Interval:
    """As ``paired_interval``, for counts that need not be whole: pairs that are worth fewer independent ones."""
    if pairs == 0:
        return Interval(-1.0, 1.0)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    estimate = (gained - lost) / pairs
    high = _edge(lost, gained, pairs, z, estimate)
    low = -_edge(gained, lost, pairs, z, -estimate)
    return Interval(low, high)


def _edge(lost: float, gained: float, pairs: float, z: float, estimate: float) -> float:
    """The largest difference that is not rejected, by bisection: the score falls as the difference grows."""
    low, high = estimate, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _score(lost, gained, pairs, middle) >= -z:
            low = middle
        else:
            high = middle
    return low if high < 1.0 else high


def _score(lost: float, gained: float, pairs: float, difference: float) -> float:
    """Tango's statistic: observed minus supposed difference over its standard error at the likeliest such truth."""
    numerator = gained - lost - pairs * difference
    b = -gained - lost + (2 * pairs - gained + lost) * difference
    c = -lost * difference * (1 - difference)
    share_lost = (math.sqrt(max(0.0, b * b - 8 * pairs * c)) - b) / (4 * pairs)
    variance = pairs * (2 * share_lost + difference * (1 - difference))
    if variance <= 0:
        return 0.0 if numerator == 0 else math.copysign(math.inf, numerator)
    return numerator / math.sqrt(variance)
