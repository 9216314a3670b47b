"""What a grid can see: the smallest drop in accuracy that a paired exact McNemar test finds with good power."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from math import comb
from statistics import NormalDist

# of all pairs, how many get better by chance while others get worse: seen between cache formats of one model
IMPROVE_SHARE = 0.03
ALPHA = 0.05
POWER = 0.8
EXACT_PAIRS = 1_000


def power_of_drop(pairs: int, drop: float, improve: float = IMPROVE_SHARE) -> float:
    """Probability that ``pairs`` pairs show a true drop at 5 %, summed over all outcomes.

    Args:
        drop: share that gets worse minus share that gets better.
        improve: share that gets better.
    """
    worse = improve + drop
    discordant = worse + improve
    if discordant >= 1:
        return 1.0
    lean = worse / discordant
    found = 0.0
    weight = (1 - discordant) ** pairs
    for total in range(pairs + 1):
        if weight > 1e-12:
            found += weight * _rejects(total, lean)
        weight *= (pairs - total) / (total + 1) * discordant / (1 - discordant)
    return found


@lru_cache(maxsize=4096)
def _critical(total: int) -> int:
    """Fewest discordant pairs of ``total`` that must have got worse for the test to reject; ``total + 1`` when none."""
    tail, worse = 0.0, total + 1
    for k in range(total // 2 + 1):
        tail += comb(total, k) / 2**total
        if 2 * tail >= ALPHA:
            break
        worse = total - k
    return worse


def _rejects(total: int, lean: float) -> float:
    """Probability that of ``total`` discordant pairs so many got worse that the test rejects."""
    return sum(comb(total, k) * lean**k * (1 - lean) ** (total - k) for k in range(_critical(total), total + 1))


def _approximate_power(pairs: int, drop: float) -> float:
    """Normal approximation of the paired test's power (Connor 1987), for grids where the exact sum is long."""
    discordant = 2 * IMPROVE_SHARE + drop
    normal = NormalDist()
    reach = drop * pairs**0.5 - normal.inv_cdf(1 - ALPHA / 2) * discordant**0.5
    return normal.cdf(reach / (discordant - drop**2) ** 0.5)


def detectable_drop(pairs: int) -> float | None:
    """The smallest drop in accuracy, in half points, found with 80 % power; None when not even 60 points are."""
    power = power_of_drop if pairs <= EXACT_PAIRS else _approximate_power
    found = bisect_left(range(1, 121), POWER, key=lambda step: power(pairs, step / 200))
    return None if found == 120 else (found + 1) / 200
