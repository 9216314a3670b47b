from __future__ import annotations

import json

import pytest

from niah.stats.compare import cell_differences, compare_rows, judge
from niah.stats.intervals import Interval
from niah.stats.pairs import join_rows
from tests.helpers.made_rows import make_row, make_rows


@pytest.mark.parametrize(
    ("low", "high", "p", "contexts", "verdict"),
    [
        (-0.12, -0.03, 0.001, 20, "worse"),
        (0.03, 0.12, 0.001, 20, "better"),
        (-0.12, -0.03, 0.08, 20, "too few to say"),
        (-0.12, 0.01, 0.04, 20, "too few to say"),
        (-0.015, 0.019, 0.8, 200, "equivalent"),
        (-0.018, -0.002, 0.01, 2000, "equivalent"),
        (-0.02, 0.0, 0.2, 200, "too few to say"),
        (-0.9, -0.8, 0.0001, 5, "too few to say"),
        (-0.001, 0.001, 1.0, 5, "too few to say"),
    ],
)
def test_verdicts_go_by_the_edges(low: float, high: float, p: float, contexts: int, verdict: str) -> None:
    assert judge(Interval(low, high), p, contexts) == verdict


def test_figures_by_hand() -> None:
    base = [
        make_row("bf16", 512, depth, trial, correct=True, logprob=-1.0) for trial in range(8) for depth in (0.0, 1.0)
    ]
    new = [
        make_row("int4", 512, depth, trial, not (depth == 1.0 and trial < 4), logprob=-1.5)
        for trial in range(8)
        for depth in (0.0, 1.0)
    ]
    found = compare_rows(base, new, base="bf16", new="int4")
    assert (found.pairs, found.contexts, found.lost, found.gained) == (16, 8, 4, 0)
    assert (found.accuracy_base, found.accuracy_new, found.delta) == (1.0, 0.75, -0.25)
    assert found.p == pytest.approx(2 * 0.5**4)
    assert found.logprob_delta == pytest.approx(-0.5)
    assert found.logprob_lower
    assert found.verdict == "too few to say", "four lost pairs are p = 0.125"


def test_only_cells_answered_on_both_sides_are_pairs() -> None:
    base = make_rows("bf16", 1.0, trials=6)
    new = [
        make_row("int8", row.length, row.depth, row.trial, None if row.depth == 0.5 else True)
        for row in base
        if row.depth != 0.0
    ]
    found = compare_rows(base, new)
    assert found.pairs == 36
    assert found.accuracy_new == 1.0, "a failure is not a wrong answer"
    assert any("12 cells have no answer" in caveat for caveat in found.caveats)
    assert any("12 cells only in the base" in caveat for caveat in found.caveats)


def test_a_later_failure_does_not_undo_an_answer() -> None:
    base = make_rows("bf16", 1.0)
    again = [make_row("bf16", row.length, row.depth, row.trial, None) for row in base]
    assert compare_rows(base + again, base).pairs == len(base)


@pytest.mark.parametrize(("trials", "verdict"), [(2, "too few to say"), (6, "too few to say"), (40, "equivalent")])
def test_a_setting_against_itself(trials: int, verdict: str) -> None:
    rows = make_rows("bf16", 0.7, trials=trials)
    found = compare_rows(rows, rows)
    assert found.verdict == verdict
    assert found.delta == 0
    assert found.logprob_ci == Interval(0.0, 0.0)
    assert "both sides are the same measurement" in found.caveats


def test_damage_that_accuracy_does_not_show() -> None:
    base = make_rows("bf16", 1.0, logprob=-0.2)
    new = make_rows("int4", 1.0, logprob=-0.9, seed=1)
    found = compare_rows(base, new)
    assert found.verdict == "too few to say"
    assert found.logprob_ci is not None
    assert found.logprob_ci.low < -0.7 < found.logprob_ci.high < 0
    text = " ".join(found.caveats)
    assert "accuracy is saturated" in text
    assert "log-probability of the right answer fell beyond doubt" in text


def test_a_broken_setting_is_not_interpreted() -> None:
    found = compare_rows(make_rows("bf16", 1.0), make_rows("int8", 0.0), base="bf16", new="int8", broken=["int8"])
    assert found.broken
    assert found.verdict == "too few to say"
    assert not found.drops_more_than(0.0), "garbage is a fault, not a cost"
    assert found.caveats[0].startswith("int8 failed its canary")


def test_questions_of_one_context_that_fail_together_count_once() -> None:
    base = make_rows("bf16", 1.0, lengths=(512,), depths=10, trials=12)
    lost = [make_row("int8", r.length, r.depth, r.trial, r.trial >= 2) for r in base]
    spread = [make_row("int8", r.length, r.depth, r.trial, (r.trial * 7 + round(r.depth * 9)) % 6 != 0) for r in base]
    together, apart = compare_rows(base, lost), compare_rows(base, spread)
    assert together.lost == apart.lost == 20
    assert together.p == apart.p < 0.001
    assert together.verdict == "too few to say", "two contexts of twelve are no proof, whatever McNemar says"
    assert apart.verdict == "worse"


def test_max_drop_goes_by_the_edge() -> None:
    found = compare_rows(make_rows("bf16", 1.0, trials=30), make_rows("int4", 0.7, trials=30, seed=2))
    assert found.ci is not None
    assert found.delta is not None
    edge = -found.ci.high
    assert found.drops_more_than(edge - 0.001)
    assert not found.drops_more_than(edge + 0.001)
    assert edge + 0.001 < -found.delta, "the point alone would have missed the bar"


def test_no_pair_says_nothing() -> None:
    found = compare_rows(make_rows("bf16", 1.0), [])
    assert (found.pairs, found.verdict, found.ci, found.delta) == (0, "too few to say", None, None)
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.0])
def test_impossible_margin(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        compare_rows([], [], margin=margin)


def test_squares_of_a_map_are_corrected_for_their_number() -> None:
    base = make_rows("bf16", 1.0, trials=12)
    new = make_rows("int4", lambda length, depth: 0.0 if (length, depth) == (1024, 0.5) else 1.0, trials=12)
    cells = cell_differences(join_rows(base, new))
    assert len(cells) == 10
    bad = [cell for cell in cells if cell.significant]
    assert [(cell.length, cell.depth, cell.delta) for cell in bad] == [(1024, 0.5, -1.0)]
    assert bad[0].p == pytest.approx(2 * 0.5**12)
    assert bad[0].p_holm == pytest.approx(10 * bad[0].p)


def test_one_of_a_kind_is_said_as_one() -> None:
    base = [make_row("bf16", 512, depth, 0, correct=True) for depth in (0.0, 0.5, 1.0)]
    new = [make_row("int8", 512, 0.0, 0, correct=True), make_row("int8", 512, 0.5, 0, None)]
    caveats = " ".join(compare_rows(base, new).caveats)
    assert "only 1 context (lengths" in caveats
    assert "1 cell has no answer on at least one side and is left out" in caveats
    assert "1 cell only in the base and 0 only in the new one" in caveats
