"""Verdict, interval and p of several comparisons: none contradicts another."""

from __future__ import annotations

import json

import numpy as np
import pytest

from niah.stats.compare import Comparison, compare_pairs, compare_rows
from niah.stats.family import Member, compare_together
from niah.stats.holm import holm, holm_levels
from niah.stats.intervals import RESOLUTION, Interval
from niah.stats.pairs import join_rows
from niah.stats.power import MIN_CONTEXTS
from niah.stats.ushape import ushape, ushape_change
from tests.helpers.made_rows import make_row, make_rows, simulated_pairs


@pytest.mark.parametrize("seed", range(20))
def test_levels_are_those_of_the_adjusted_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p_values = [float(p) for p in rng.beta(0.3, 3, 6)]
    levels = holm_levels(p_values)
    assert [p < level for p, level in zip(p_values, levels, strict=True)] == [p < 0.05 for p in holm(p_values)]
    assert min(levels) == pytest.approx(0.05 / 6)


def test_levels_by_hand() -> None:
    assert holm_levels([0.04, 0.001, 0.03]) == pytest.approx([0.025, 0.05 / 3, 0.025])
    assert holm_levels([0.001, 0.002, 0.003]) == pytest.approx([0.05 / 3, 0.025, 0.05])
    assert holm_levels([]) == []


def _family(seed: int) -> list[Comparison]:
    rng = np.random.default_rng(seed)
    shares = [(0.05, 0.05), (0.12, 0.03), (0.2, 0.03), (0.35, 0.02), (0.03, 0.15)]
    pairs = [simulated_pairs(rng, 12, 11, lose, gain, 0.15) for lose, gain in shares]
    return compare_together([Member("bf16", str(i), part) for i, part in enumerate(pairs)])


def test_verdict_interval_and_p_agree() -> None:
    seen = set()
    for item in (item for seed in range(12) for item in _family(seed)):
        assert item.ci is not None
        assert item.delta is not None
        assert item.p_holm is not None
        assert item.ci.low <= item.delta <= item.ci.high
        assert item.p_holm >= item.p
        apart = item.ci.is_below_zero or item.ci.is_above_zero
        if item.verdict in ("worse", "better"):
            assert apart
            assert item.p_holm < 0.05
            assert item.why == ""
        elif item.verdict == "too few to say":
            assert not (apart and item.p_holm < 0.05)
            assert item.why
        seen.add(item.verdict)
    assert {"worse", "better", "too few to say"} <= seen


def test_alone_it_would_be_worse_and_together_it_says_why_not() -> None:
    base = make_rows("bf16", 1.0, trials=12)
    lost = {(512, 0, 0.0), (512, 1, 0.25), (512, 2, 0.5), (512, 3, 0.75), (512, 4, 1.0), (1024, 5, 0.0)}
    new = [make_row("int8", r.length, r.depth, r.trial, (r.length, r.trial, r.depth) not in lost) for r in base]
    pairs = join_rows(base, new)
    assert compare_pairs(pairs).verdict == "worse"
    same = join_rows(base, base)
    item = compare_together([Member("bf16", "int8", pairs), *(Member("bf16", str(i), same) for i in range(4))])[0]
    assert item.verdict == "too few to say"
    assert item.ci is not None
    assert item.ci.high > -RESOLUTION
    assert item.p_holm == pytest.approx(5 * item.p)
    assert item.why == "p = 0.031 alone is no verdict among 5 that are compared together"
    assert item.why in item.caveats
    assert (item.together, item.confidence) == (5, pytest.approx(0.99))


def test_what_gets_no_verdict_costs_the_others_nothing() -> None:
    base, few = make_rows("bf16", 1.0, trials=12), make_rows("bf16", 1.0, trials=2)
    pairs = join_rows(base, make_rows("int8", 0.7, trials=12, seed=3))
    short = join_rows(few, make_rows("int4", 0.2, trials=2))
    found = compare_together(
        [Member("bf16", "int8", pairs), Member("bf16", "int4", short), Member("bf16", "kivi2", pairs, ["kivi2"])]
    )
    assert [item.together for item in found] == [1, 1, 1]
    assert found[0].confidence == 0.95
    assert found[1].why == f"4 of the {MIN_CONTEXTS} contexts (lengths × trials) that a verdict needs"
    assert found[2].why == "a canary failed"
    assert all(json.dumps(item.to_json(), allow_nan=False) for item in found)


def test_few_contexts_are_never_beyond_doubt() -> None:
    found = compare_rows(make_rows("bf16", 1.0, trials=2), make_rows("kivi2", 0.0, trials=2, logprob=-9.0))
    assert found.p < 0.001
    assert found.verdict == "too few to say"
    assert found.why.startswith("4 of the 6 contexts")
    assert not found.logprob_lower
    assert not found.drops_more_than(0.02)
    assert found.seems_to_drop_more_than(0.02), "which a gate must not pass in silence"


@pytest.mark.parametrize("seed", range(8))
def test_nothing_impossible_is_in_an_interval(seed: int) -> None:
    """Two or three texts of few questions: t intervals alone would reach −137 to +117 points."""
    base = make_rows("bf16", 0.6, lengths=(512,), depths=5, trials=2 + seed % 2, seed=seed)
    new = make_rows("int8", 0.4, lengths=(512,), depths=5, trials=2 + seed % 2, seed=seed + 50)
    found = compare_rows(base, new)
    assert found.ci is not None
    assert found.delta is not None
    assert -1 <= found.ci.low <= found.delta <= found.ci.high <= 1
    for shape in (ushape(base), ushape(new)):
        _within(shape.index, -1, 1)
        # five depths: through three points of a half, a slope is at most what two ends make, in shares per text
        _within(shape.primacy, -2, 2)
        _within(shape.recency, -2, 2)
    change = ushape_change(join_rows(base, new))
    _within(change.index, -2, 2)
    _within(change.primacy, -4, 4)


def _within(part: object, low: float, high: float) -> None:
    assert part is not None
    assert low <= part.ci.low <= part.value <= part.ci.high <= high  # type: ignore[attr-defined]


def test_nobody_loses_more_than_the_base_has() -> None:
    base = make_rows("bf16", 0.1, lengths=(512,), depths=5, trials=12, seed=1)
    found = compare_rows(base, make_rows("int8", 0.1, lengths=(512,), depths=5, trials=12, seed=9))
    assert found.ci is not None
    assert found.accuracy_base is not None
    assert found.ci.low > -0.35


def test_an_edge_that_reads_as_zero_claims_nothing() -> None:
    assert not Interval(-0.058, -0.0004).is_below_zero
    assert Interval(-0.058, -0.0006).is_below_zero
    assert not Interval(0.0004, 0.2).is_above_zero
    base = make_rows("bf16", 1.0, trials=12)
    drops = [-0.058, -0.0003]
    new = [
        make_row("int8", r.length, r.depth, r.trial, correct=True, logprob=(r.logprob or 0) + drops[r.trial % 2])
        for r in base
    ]
    found = compare_rows(base, new)
    assert found.logprob_ci is not None
    assert found.logprob_lower == (found.logprob_ci.high < -RESOLUTION)
    flat = [make_row("int8", r.length, r.depth, r.trial, correct=True, logprob=(r.logprob or 0) - 0.0004) for r in base]
    tiny = compare_rows(base, flat)
    assert tiny.logprob_ci is not None
    assert tiny.logprob_ci.high < 0, "certain, but it prints as 0.000"
    assert not tiny.logprob_lower
    assert not any("beyond doubt" in caveat for caveat in tiny.caveats)
