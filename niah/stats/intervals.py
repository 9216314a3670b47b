"""Intervals for shares: what a few trials can and cannot say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

# shares are printed to a tenth of a point and log-probabilities to a thousandth of a nat: an end nearer to zero than
# half of that reads as zero, and nothing is claimed from it
RESOLUTION = 0.0005


@dataclass(frozen=True, slots=True)
class Interval:
    """Lower and upper end of a confidence interval, both inside it."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def is_below_zero(self) -> bool:
        """Whether all of it is below zero by more than rounding: the upper end does not print as zero."""
        return self.high < -RESOLUTION

    @property
    def is_above_zero(self) -> bool:
        """Whether all of it is above zero by more than rounding."""
        return self.low > RESOLUTION

    def within(self, low: float, high: float) -> Interval:
        """The part of it that is possible where only values from ``low`` to ``high`` are."""
        return Interval(min(max(self.low, low), high), max(min(self.high, high), low))


def wilson(hits: int, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a share, two-sided and without continuity correction.

    It is the set of true shares p that the normal test does not reject, |hits/n - p| <= z sqrt(p (1 - p) / n)
    (E. B. Wilson, JASA 22, 1927). Unlike the textbook interval it is never empty at 0 or n hits.

    Args:
        hits: successes, 0 to ``trials``.
        trials: independent trials; with none, every share from 0 to 1 is possible.
        confidence: coverage, between 0 and 1, both excluded.

    Raises:
        ValueError: the counts or the confidence are impossible.
    """
    if not 0 <= hits <= trials:
        raise ValueError(f"hits must be between 0 and trials, not {hits} of {trials}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
    if trials == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return score_ends(hits / trials, trials, z)


def score_ends(share: float, trials: float, z: float) -> Interval:
    """Both roots of |share - p| = z sqrt(p (1 - p) / trials), within 0 and 1; ``trials`` need not be whole."""
    denominator = 1 + z * z / trials
    center = (share + z * z / (2 * trials)) / denominator
    half = z / denominator * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    # at the ends the formula gives 0 and 1 exactly; rounding must not push it past them
    low = 0.0 if share == 0 else max(0.0, center - half)
    high = 1.0 if share == 1 else min(1.0, center + half)
    return Interval(low, high)
