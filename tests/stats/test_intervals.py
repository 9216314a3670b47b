from __future__ import annotations

from typing import Any

import pytest
from scipy.stats import binomtest

from niah.stats.intervals import Interval, wilson


@pytest.mark.parametrize("trials", [1, 2, 5, 10, 120, 1320, 100_000])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_equals_scipy(trials: int, confidence: float) -> None:
    for hits in {0, 1, trials // 3, trials // 2, trials - 1, trials}:
        mine = wilson(hits, trials, confidence)
        theirs = binomtest(hits, trials).proportion_ci(confidence, method="wilson")
        assert mine.low == pytest.approx(theirs.low, abs=1e-12)
        assert mine.high == pytest.approx(theirs.high, abs=1e-12)
        assert 0 <= mine.low <= hits / trials <= mine.high <= 1


@pytest.mark.parametrize(
    ("hits", "trials", "low"),
    [(1, 1, 0.21), (5, 5, 0.57), (10, 10, 0.72), (120, 120, 0.97)],
)
def test_what_a_full_score_can_say(hits: int, trials: int, low: float) -> None:
    interval = wilson(hits, trials)
    assert round(interval.low, 2) == low
    assert interval.high == 1.0


def test_mirrored() -> None:
    left, right = wilson(3, 10), wilson(7, 10)
    assert left.low == pytest.approx(1 - right.high)
    assert left.width == pytest.approx(right.width)


def test_no_trials_say_nothing() -> None:
    assert wilson(0, 0) == Interval(0.0, 1.0)
    assert wilson(0, 7).low == 0.0


@pytest.mark.parametrize("case", [(-1, 3, 0.95), (4, 3, 0.95), (1, -1, 0.95), (1, 3, 0.0), (1, 3, 1.0)])
def test_impossible_input(case: Any) -> None:
    with pytest.raises(ValueError, match="must be between"):
        wilson(*case)
