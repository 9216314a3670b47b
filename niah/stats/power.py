"""What a grid can see: the smallest drop in accuracy that the verdict ``worse`` finds with good power."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from math import comb
from statistics import NormalDist
from typing import Any

# of all pairs, how many get better by chance while others get worse: seen between cache formats of one model
IMPROVE_SHARE = 0.03
ALPHA = 0.05
POWER = 0.8
EXACT_PAIRS = 1_000
# with fewer contexts not even all of them falling the same way is significant at 5 %: 2 / 2^6 is 3 %, 2 / 2^5 is 6 %
MIN_CONTEXTS = 6
# how far changes of one context go together where nothing is known of the model
ASSUMED_CORRELATION = 0.05
# beyond so many contexts means are normal, and simulating them would only take time
_SIMULATED_CONTEXTS = 400
_DRAWS = 200_000
_SEED = 20_261_130


def power_of_drop(
    pairs: int,
    drop: float,
    improve: float = IMPROVE_SHARE,
    contexts: int | None = None,
    correlation: float = 0.0,
    alpha: float = ALPHA,
) -> float:
    """Probability that ``pairs`` pairs show a true drop.

    With contexts, the verdict's own rules are tried on simulated losses and gains whose chances vary from context to
    context (beta-binomial), with a fixed seed; where contexts are many, the less powerful of the exact test and a
    t-test of their means decides.

    Args:
        drop: share that gets worse minus share that gets better.
        improve: share that gets better.
        contexts: independent texts that the pairs lie in; None asks for the exact McNemar test alone.
        correlation: of two questions of one context, in getting lost as in getting better; 0 is independent, below 1.
        alpha: level of the test; of several settings compared together, that of the first step of Holm's procedure.
    """
    if improve + drop + improve >= 1:
        return 1.0
    if contexts is None:
        return _exact_power(pairs, drop, improve) if pairs <= EXACT_PAIRS else _approximate_power(pairs, drop, improve)
    if contexts < MIN_CONTEXTS:
        return 0.0
    if contexts <= _SIMULATED_CONTEXTS:
        return _simulated_power(pairs, drop, improve, contexts, correlation, alpha)
    effect = 1 + (pairs / contexts - 1) * correlation
    return min(
        _approximate_power(pairs / effect, drop, improve, alpha),
        _context_power(pairs / effect, drop, improve, contexts, alpha),
    )


def _simulated_power(pairs: int, drop: float, improve: float, contexts: int, correlation: float, alpha: float) -> float:
    import numpy as np

    rng = np.random.default_rng(_SEED)
    runs = max(600, min(4_000, _DRAWS // contexts))
    # as even as the number of pairs allows
    sizes = np.full(contexts, pairs // contexts) + (np.arange(contexts) < pairs % contexts)
    lose = _chances(rng, improve + drop, correlation, (runs, contexts))
    gain = _chances(rng, improve, correlation, (runs, contexts))
    lost = rng.binomial(sizes, np.broadcast_to(lose, (runs, contexts)))
    gained = rng.binomial(sizes - lost, np.minimum(1.0, gain / np.maximum(1 - lose, 1e-12)))
    return float(_calls_worse(lost, gained, sizes, alpha).mean())


def _chances(rng: Any, share: float, correlation: float, shape: tuple[int, int]) -> Any:
    if not correlation or not share:
        return share
    strength = (1 - correlation) / correlation
    return rng.beta(share * strength, (1 - share) * strength, shape)


def _calls_worse(lost: Any, gained: Any, sizes: Any, alpha: float) -> Any:
    """Whether the verdict on each simulated run is ``worse``: all of what it asks for, in closed form.

    The bootstrap's percentile is that of its first three cumulants (Cornish and Fisher).

    Args:
        lost, gained: ``[runs, contexts]``. sizes: ``[contexts]``.
    """
    import numpy as np
    from scipy.special import bdtr, stdtrit

    contexts, pairs = lost.shape[1], float(sizes.sum())
    worse, better = lost.sum(axis=1), gained.sum(axis=1)
    both = np.maximum(worse + better, 1)
    exact = 2 * bdtr(np.minimum(worse, better).astype(float), both, np.full(len(both), 0.5)) < alpha
    score = (worse - better) / np.sqrt(both) > NormalDist().inv_cdf(1 - alpha / 2)
    mean = (better - worse) / pairs
    residuals = gained - lost - mean[:, None] * sizes
    squares = (residuals**2).sum(axis=1)
    reach = float(stdtrit(contexts - 1, 1 - alpha / 2)) * (contexts / (contexts - 1)) ** 0.5
    half = reach * np.sqrt(squares) / pairs
    skew = (residuals**3).sum(axis=1) / np.maximum(squares, 1e-12) ** 1.5
    percentile = mean + half * (1 + skew * (reach**2 - 1) / (6 * reach))
    # no draw of contexts has a better mean than the best of them
    best = ((gained - lost) / np.maximum(sizes, 1)).max(axis=1)
    return exact & score & (worse > better) & (np.maximum(mean + half, np.minimum(percentile, best)) < 0)


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


def _context_power(pairs: float, drop: float, improve: float, contexts: int, alpha: float) -> float:
    """Probability that a two-sided t-test of ``contexts`` means of paired differences finds the drop."""
    from scipy.special import nctdtr, stdtrit

    freedom = contexts - 1
    standard_error = ((2 * improve + drop - drop**2) / pairs) ** 0.5
    return float(1 - nctdtr(freedom, drop / standard_error, stdtrit(freedom, 1 - alpha / 2)))


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


def _approximate_power(pairs: float, drop: float, improve: float, alpha: float = ALPHA) -> float:
    """Normal approximation of the paired test's power (Connor 1987), for grids where the exact sum is long."""
    discordant = 2 * improve + drop
    normal = NormalDist()
    reach = drop * pairs**0.5 - normal.inv_cdf(1 - alpha / 2) * discordant**0.5
    return normal.cdf(reach / (discordant - drop**2) ** 0.5)


def detectable_drop(
    pairs: int, contexts: int | None = None, correlation: float = 0.0, alpha: float = ALPHA
) -> float | None:
    """The smallest drop in accuracy, in half points, found with 80 % power; None when not even 60 points are.

    Args: as ``power_of_drop``.
    """
    found = bisect_left(
        range(1, 121),
        POWER,
        key=lambda step: power_of_drop(pairs, step / 200, contexts=contexts, correlation=correlation, alpha=alpha),
    )
    return None if found == 120 else (found + 1) / 200
