from __future__ import annotations

import random

import pytest

from niah.stats.paired import mcnemar_p
from niah.stats.power import detectable_drop, power_of_drop
from tests.helpers.known import known


def test_power_by_simulation() -> None:
    rng = random.Random(5)
    found = 0
    runs, pairs = 1500, 300
    for _ in range(runs):
        draws = [rng.random() for _ in range(pairs)]
        worse, better = sum(d < 0.08 for d in draws), sum(d > 0.97 for d in draws)
        found += worse > better and mcnemar_p(worse, better) < 0.05
    assert power_of_drop(pairs, 0.05) == pytest.approx(found / runs, abs=0.04)


def test_more_pairs_see_less() -> None:
    drops = [known(detectable_drop(n)) for n in (30, 100, 400, 1000, 1001, 20_000)]
    assert drops == sorted(drops, reverse=True)
    assert abs(drops[3] - drops[4]) <= 0.005, "exact sum and approximation must meet"
    assert detectable_drop(5) is None


def test_few_contexts_see_less() -> None:
    drops = [known(detectable_drop(300, contexts)) for contexts in (6, 12, 60, 300)]
    assert drops == sorted(drops, reverse=True)
    assert drops[-1] == pytest.approx(detectable_drop(300), abs=0.006), "the exact test decides where contexts are many"
    assert detectable_drop(300, 5) is None, "no verdict is given on five contexts"
