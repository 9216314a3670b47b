"""What the verdict promises, checked on made-up pairs whose truth is known."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from niah.stats.compare import Comparison, compare_pairs
from niah.stats.power import detectable_drop, power_of_drop
from niah.stats.sequential import STOP_CONFIDENCE
from tests.made_rows import simulated_pairs


def _many(runs: int, seed: int, *args: float) -> list[Comparison]:
    rng = np.random.default_rng(seed)
    contexts, depths, *shares = args
    return [compare_pairs(simulated_pairs(rng, int(contexts), int(depths), *shares)) for _ in range(runs)]


@pytest.mark.parametrize(
    ("contexts", "depths", "share", "together"), [(18, 5, 0.08, 0.0), (18, 5, 0.1, 0.3), (60, 11, 0.05, 0.2)]
)
def test_equal_settings_raise_few_false_alarms(contexts: int, depths: int, share: float, together: float) -> None:
    runs = 1000
    found = _many(runs, 11, contexts, depths, share, share, together)
    verdicts = Counter(item.verdict for item in found)
    # the true rate is at most 5 %; a thousand runs know it to within two standard errors
    sampling = 2 * (0.05 * 0.95 / runs) ** 0.5
    assert (verdicts["worse"] + verdicts["better"]) / runs <= 0.05 + sampling
    covered = sum(item.ci is not None and item.ci.low <= 0 <= item.ci.high for item in found) / runs
    assert covered >= 0.93
    if together:
        naive = sum(item.p < 0.05 for item in found) / runs
        assert naive > 0.05, "without contexts, the exact test alone would cry wolf: else this proves nothing"


@pytest.mark.parametrize(("contexts", "depths"), [(6, 5), (18, 5), (60, 5)])
def test_power_is_what_the_plan_promised(contexts: int, depths: int) -> None:
    drop = detectable_drop(contexts * depths, contexts)
    assert drop is not None
    promised = power_of_drop(contexts * depths, drop, contexts=contexts)
    runs = 600
    found = _many(runs, 12, contexts, depths, 0.03 + drop, 0.03)
    assert sum(item.verdict == "worse" for item in found) / runs == pytest.approx(promised, abs=0.05)
    covered = sum(item.ci is not None and item.ci.low <= -drop <= item.ci.high for item in found) / runs
    assert covered >= 0.93


def test_looking_after_each_round_raises_few_false_alarms() -> None:
    rng = np.random.default_rng(13)
    alarms = looks = 0
    runs = 300
    for _ in range(runs):
        pairs = simulated_pairs(rng, 2 * 48, 5, 0.06, 0.06, 0.2)
        for trials in (6, 12, 24, 48):
            seen = pairs.where(pairs.contexts < 2 * trials)
            looks += 1
            if trials == 48 or compare_pairs(seen, confidence=STOP_CONFIDENCE).verdict != "too few to say":
                alarms += compare_pairs(seen).verdict in ("worse", "better")
                break
    assert alarms / runs <= 0.05
    assert looks > 3 * runs, "most runs must really have been looked at several times"
