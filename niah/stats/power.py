"""What a grid can see: the smallest drop in accuracy that the verdict ``worse`` finds with good power."""

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
# with fewer contexts not even all of them falling the same way is significant at 5 %: 2 / 2^6 is 3 %, 2 / 2^5 is 6 %
MIN_CONTEXTS = 6


def power_of_drop(pairs: int, drop: float, improve: float = IMPROVE_SHARE, contexts: int | None = None) -> float:
    """Probability that ``pairs`` pairs show a true drop at 5 %.

    The verdict asks for two things, and the less powerful of them decides: the exact McNemar test (summed over all
    outcomes) and the interval over contexts (a t-test of their means; noncentral t). Questions of one context are taken
    to fail independently: where they fail together, the power is less.

    Args:
        drop: share that gets worse minus share that gets better.
        improve: share that gets better.
        contexts: independent texts that the pairs lie in; None asks for the exact test alone.
    """
    if improve + drop + improve >= 1:
        return 1.0
    exact = _exact_power if pairs <= EXACT_PAIRS else _approximate_power
    found = exact(pairs, drop, improve)
    return found if contexts is None else min(found, _context_power(pairs, drop, improve, contexts))


def _exact_power(pairs: int, drop: float, improve: float) -> float:
    worse = improve + drop
    discordant = worse + improve
    lean = worse / discordant
    found = 0.0
    weight = (1 - discordant) ** pairs
    for total in range(pairs + 1):
        if weight > 1e-12:
            found += weight * _rejects(total, lean)
        weight *= (pairs - total) / (total + 1) * discordant / (1 - discordant)
    return found


def _context_power(pairs: int, drop: float, improve: float, contexts: int) -> float:
    """Probability that a two-sided t-test of ``contexts`` means of paired differences finds the drop."""
    from scipy.special import nctdtr, stdtrit

    if contexts < MIN_CONTEXTS:
        return 0.0
    freedom = contexts - 1
    # the verdict's interval is the wider of two; by simulation about as wide as this factor makes one of them
    widening = contexts / freedom
    standard_error = ((2 * improve + drop - drop**2) / pairs * widening) ** 0.5
    return float(1 - nctdtr(freedom, drop / standard_error, stdtrit(freedom, 1 - ALPHA / 2)))


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


def _approximate_power(pairs: int, drop: float, improve: float) -> float:
    """Normal approximation of the paired test's power (Connor 1987), for grids where the exact sum is long."""
    discordant = 2 * improve + drop
    normal = NormalDist()
    reach = drop * pairs**0.5 - normal.inv_cdf(1 - ALPHA / 2) * discordant**0.5
    return normal.cdf(reach / (discordant - drop**2) ** 0.5)


def detectable_drop(pairs: int, contexts: int | None = None) -> float | None:
    """The smallest drop in accuracy, in half points, found with 80 % power; None when not even 60 points are."""
    found = bisect_left(range(1, 121), POWER, key=lambda step: power_of_drop(pairs, step / 200, contexts=contexts))
    return None if found == 120 else (found + 1) / 200
