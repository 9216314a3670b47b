"""A setting's own interval: what it covers where questions of one text stand or fall together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtrit

from niah.report.data.grid import summarize
from niah.stats.clustered import LEANING, Context, clustered_interval, contexts_of, is_assumed
from niah.stats.intervals import Interval, wilson
from tests.helpers.made_rows import make_row, make_rows

RUNS = 600
QUESTIONS = 11
GRIDS = [(3, 10), (1, 6), (6, 1), (2, 4)]
SHARES = (0.02, 0.05, 0.5, 0.9, 0.97)
CORRELATIONS = (0.0, 0.1, 0.2, 0.3)


def _beta(rng: np.random.Generator, share: float, correlation: float, texts: int) -> np.ndarray:
    """Right answers of each text, ``[runs, texts]``: beta-binomial, whose intraclass correlation is 1 / (a + b + 1)."""
    if not correlation:
        return rng.binomial(QUESTIONS, share, (RUNS, texts))
    strength = (1 - correlation) / correlation
    return rng.binomial(QUESTIONS, rng.beta(share * strength, (1 - share) * strength, (RUNS, texts)))


def _copula(rng: np.random.Generator, share: float, correlation: float, texts: int) -> np.ndarray:
    """The same by a normal variable that questions of a text share, weighted for the correlation of answers."""
    if not correlation:
        return rng.binomial(QUESTIONS, share, (RUNS, texts))
    grid = np.linspace(-8, 8, 2001)
    density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi) * (grid[1] - grid[0])

    def together(weight: float) -> float:
        chance = ndtr((ndtri(share) + np.sqrt(weight) * grid) / np.sqrt(1 - weight))
        return float((chance**2 * density).sum() - share**2) / (share * (1 - share)) - correlation

    weight = brentq(together, 1e-6, 0.999)
    shared = rng.standard_normal((RUNS, texts))
    return rng.binomial(QUESTIONS, ndtr((ndtri(share) + np.sqrt(weight) * shared) / np.sqrt(1 - weight)))


def _intervals(counts: np.ndarray, trials: int) -> Iterator[Interval]:
    for run in counts:
        yield clustered_interval([Context(i // trials, int(hits), QUESTIONS) for i, hits in enumerate(run)])


@pytest.mark.parametrize(("lengths", "trials"), GRIDS)
def test_it_covers_the_truth_whatever_goes_together(lengths: int, trials: int) -> None:
    rng = np.random.default_rng(1)
    texts = lengths * trials
    seen = []
    for make, share, correlation in product((_beta, _copula), SHARES, CORRELATIONS):
        found = list(_intervals(make(rng, share, correlation, texts), trials))
        seen.append(sum(i.low <= share <= i.high for i in found) / RUNS)
        assert all(i.width > 0.005 for i in found), "never empty, not even when all are right"
    # 600 runs know a coverage of 93 % to within two points
    assert min(seen) >= 0.91
    assert np.mean(seen) >= 0.93
    assert np.mean(seen) <= 0.995


def test_wilson_over_all_questions_would_not() -> None:
    rng = np.random.default_rng(2)
    counts = _beta(rng, 0.5, 0.2, 30).sum(axis=1)
    covered = sum(i.low <= 0.5 <= i.high for i in (wilson(int(hits), 330) for hits in counts)) / RUNS
    assert covered < 0.8, "else the simulation proves nothing"


def test_it_is_not_wider_than_it_must_be() -> None:
    """Against the t interval of the texts' shares, which knows nothing of binomials and needs large counts."""
    rng = np.random.default_rng(3)
    for correlation, most in ((0.0, 1.3), (0.2, 1.1)):
        counts = _beta(rng, 0.5, correlation, 30)
        shares = counts / QUESTIONS
        theirs = 2 * stdtrit(29, 0.975) * shares.std(axis=1, ddof=1) / np.sqrt(30)
        mine = np.array([i.width for i in _intervals(counts, 30)])
        assert 0.95 <= mine.mean() / theirs.mean() <= most


def test_with_one_question_a_text_it_is_wilsons() -> None:
    contexts = [Context(512, int(i < 13), 1) for i in range(20)]
    assert clustered_interval(contexts) == wilson(13, 20)
    assert clustered_interval([]) == Interval(0.0, 1.0)
    assert clustered_interval([Context(512, 0, 0)]) == Interval(0.0, 1.0)


def test_by_hand() -> None:
    """Six texts of ten, of which one fails: the steps with pencil and paper."""
    contexts = [Context(512, hits, 10) for hits in (10, 10, 10, 10, 10, 4)]
    share, z = 54 / 60, ndtri(0.975)
    residuals = np.array([1.0] * 5 + [-5.0])
    effect = 6 / 5 * (residuals**2).sum() / (60 * share * (1 - share))
    tails = 6 * (residuals**4).sum() / (residuals**2).sum() ** 2
    freedom = 2 * 6 / (tails - 1)
    leaning = (4 * (1 + 9 * LEANING) + freedom * effect) / (4 + freedom)
    worth = min(
        60 / leaning * (z / stdtrit(4 + freedom, 0.975)) ** 2,
        60 / effect * (z / stdtrit(5, 0.975)) ** 2,
    )
    found = clustered_interval(contexts)
    for edge in (found.low, found.high):
        assert abs(share - edge) == pytest.approx(z * np.sqrt(edge * (1 - edge) / worth))


def test_lengths_are_chosen_and_not_drawn() -> None:
    """That long texts are harder is no doubt about the share over this grid; that texts differ is."""
    apart = [Context(length, hits, 10) for length, hits in ((512, 10), (4096, 2)) for _ in range(10)]
    mixed = [Context(512, hits, 10) for hits in (10, 2) for _ in range(10)]
    assert clustered_interval(apart).width < 0.6 * clustered_interval(mixed).width


def test_rows_become_texts() -> None:
    rows = [*make_rows("int8", 1.0, lengths=(512, 1024), depths=5, trials=2), make_row("int8", 512, 0.3, 0, None)]
    assert contexts_of(rows) == [Context(length, 5, 5) for length in (512, 512, 1024, 1024)]
    total = summarize(rows)
    assert (total.contexts, total.answered, total.is_assumed) == (4, 20, True)
    assert total.interval.low < wilson(20, 20).low - 0.05, "four texts are not twenty questions"
    assert total.interval.high == 1.0


@pytest.mark.parametrize(("contexts", "answered", "assumed"), [(5, 55, True), (6, 66, False), (3, 3, False)])
def test_few_texts_are_told(contexts: int, answered: int, assumed: bool) -> None:
    assert is_assumed(contexts, answered) is assumed


def test_few_texts_do_not_pretend() -> None:
    """With two to five texts the assumed correlation still covers what is drawn from it."""
    rng = np.random.default_rng(4)
    for texts, share in product((2, 3, 5), (0.5, 0.9)):
        found = list(_intervals(_beta(rng, share, 0.2, texts), texts))
        assert sum(i.low <= share <= i.high for i in found) / RUNS >= 0.93
