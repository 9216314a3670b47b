from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from niah.stats.bootstrap import context_sums, expanded_interval, hull, ratio_interval, resampled
from niah.stats.intervals import Interval


def test_sums_by_context() -> None:
    values = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    assert context_sums(values, np.array([0, 1, 0]), 3).tolist() == [[5.0, 50.0], [2.0, 20.0], [0.0, 0.0]]


def test_agrees_with_scipy_over_contexts() -> None:
    rng = np.random.default_rng(1)
    sums = np.stack([rng.normal(1, 1, 40), np.full(40, 5.0)], axis=1)
    totals = resampled(sums, draws=20_000)
    mine = np.quantile(totals[:, 0] / totals[:, 1], [0.025, 0.975])
    theirs = stats.bootstrap(
        (sums[:, 0], sums[:, 1]),
        lambda a, b, axis: a.sum(axis) / b.sum(axis),
        paired=True, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2),
    ).confidence_interval  # fmt: skip
    assert mine == pytest.approx([theirs.low, theirs.high], abs=0.004)


def test_few_contexts_come_to_the_t_interval() -> None:
    rng = np.random.default_rng(3)
    sums = np.stack([rng.normal(0, 1, 12), np.ones(12)], axis=1)
    totals = resampled(sums, draws=40_000)
    mine = expanded_interval(totals[:, 0] / totals[:, 1], 12)
    theirs = stats.t.interval(0.95, 11, loc=sums[:, 0].mean(), scale=stats.sem(sums[:, 0]))
    plain = np.quantile(totals[:, 0] / totals[:, 1], [0.025, 0.975])
    assert mine.width == pytest.approx(theirs[1] - theirs[0], rel=0.06)
    assert mine.width > 1.1 * (plain[1] - plain[0]), "percentiles alone are too narrow here"


def test_ratio_interval_is_the_t_interval_when_contexts_are_equal() -> None:
    sums = np.stack([np.random.default_rng(4).normal(3, 2, 9), np.full(9, 5.0)], axis=1)
    mine = ratio_interval(sums, 0.9)
    theirs = stats.t.interval(0.9, 8, loc=sums[:, 0].mean() / 5, scale=stats.sem(sums[:, 0] / 5))
    assert (mine.low, mine.high) == pytest.approx(theirs)


def test_same_rows_same_draws_however_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = np.arange(10.0).reshape(5, 2)
    whole = resampled(sums, draws=100)
    assert (resampled(sums, draws=100) == whole).all()
    monkeypatch.setattr("niah.stats.bootstrap._CHUNK", 35)
    assert (resampled(sums, draws=100) == whole).all()


def test_refusals_and_hull() -> None:
    with pytest.raises(ValueError, match="at least two"):
        expanded_interval([0.1, 0.2], 1)
    with pytest.raises(ValueError, match="no draw"):
        expanded_interval([float("nan")], 5)
    assert hull(Interval(0, 2), Interval(-1, 1)) == Interval(-1, 2)
