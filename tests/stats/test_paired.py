from __future__ import annotations

import math

import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest, norm

from niah.stats.paired import mcnemar_p, paired_interval


@pytest.mark.parametrize(("worse", "better"), [(0, 0), (5, 0), (6, 1), (10, 3), (30, 12), (4, 4), (700, 610)])
def test_mcnemar_is_the_exact_binomial_test(worse: int, better: int) -> None:
    expected = binomtest(worse, worse + better).pvalue if worse + better else 1.0
    assert mcnemar_p(worse, better) == pytest.approx(expected)


def _score(lost: int, gained: int, pairs: int, difference: float) -> float:
    """Tango's statistic from its definition: the likeliest shares under the difference are found numerically."""

    def surprise(p_lost: float) -> float:
        p_gained = p_lost + difference
        rest = 1 - p_lost - p_gained
        parts = ((lost, p_lost), (gained, p_gained), (pairs - lost - gained, rest))
        return -sum(count * math.log(max(share, 1e-300)) for count, share in parts if count)

    low, high = max(0.0, -difference), (1 - difference) / 2
    p_lost = minimize_scalar(surprise, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
    variance = (2 * p_lost + difference - difference**2) / pairs
    return ((gained - lost) / pairs - difference) / math.sqrt(variance)


@pytest.mark.parametrize(("lost", "gained", "pairs"), [(8, 3, 100), (1, 0, 30), (20, 20, 90), (0, 7, 12), (45, 2, 60)])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_edges_are_where_the_score_test_turns(lost: int, gained: int, pairs: int, confidence: float) -> None:
    z = norm.ppf((1 + confidence) / 2)
    interval = paired_interval(lost, gained, pairs, confidence)
    assert interval.low < (gained - lost) / pairs < interval.high
    assert _score(lost, gained, pairs, interval.low) == pytest.approx(z, abs=1e-3)
    assert _score(lost, gained, pairs, interval.high) == pytest.approx(-z, abs=1e-3)


@pytest.mark.parametrize("pairs", [1, 10, 200])
def test_equal_pairs_leave_a_known_width(pairs: int) -> None:
    z = norm.ppf(0.975)
    interval = paired_interval(0, 0, pairs)
    assert interval.high == pytest.approx(z * z / (pairs + z * z))
    assert interval.low == pytest.approx(-interval.high)


def test_ends_and_mirror() -> None:
    assert paired_interval(0, 9, 9).high == 1.0
    assert paired_interval(9, 0, 9).low == -1.0
    one, other = paired_interval(3, 11, 50), paired_interval(11, 3, 50)
    assert one.low == pytest.approx(-other.high)
    assert paired_interval(0, 0, 0).width == 2.0


@pytest.mark.parametrize("case", [(-1, 0, 5), (3, 3, 5)])
def test_impossible_counts(case: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="lost and gained"):
        paired_interval(*case)


def test_impossible_confidence() -> None:
    with pytest.raises(ValueError, match="confidence"):
        paired_interval(1, 1, 5, 1.0)
