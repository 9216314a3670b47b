"""What a reply becomes: only an answer is right or wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from niah.runner.cells import PlannedCell
from niah.runner.plan import Plan
from niah.runner.rows import failed_row, make_row
from niah.types import Failure, Prompt, Reply
from tests.helpers.scripted import planned, right

PRICE = {"input_usd": 2.0, "output_usd": 10.0}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planned(price=PRICE, trials=1)


@pytest.fixture(scope="module")
def cell(plan: Plan) -> PlannedCell:
    return plan.cells(plan.kvs[0], plan.groups[0])[1]


@pytest.fixture(scope="module")
def prompt(plan: Plan) -> Prompt:
    return plan.builder.prompts(plan.groups[0])[1]


@pytest.mark.parametrize(
    ("changes", "outcome", "correct"),
    [
        ({}, "answered", True),
        ({"text": " 0000000."}, "answered", False),
        ({"text": ""}, "answered", False),
        ({"text": " I will not say", "stop": "refused"}, "refused", None),
        ({"text": " Well, the", "stop": "length"}, "truncated", None),
        ({"output_tokens": -1}, "failed", None),
        ({"cached_tokens": 2**60}, "failed", None),
    ],
)
def test_outcomes(
    plan: Plan, cell: PlannedCell, prompt: Prompt, changes: dict[str, object], outcome: str, correct: bool | None
) -> None:
    row = make_row(plan, cell, prompt, right(prompt, **changes), 1)
    assert (row.outcome, row.correct) == (outcome, correct)
    assert (row.score is None) is (correct is None)
    assert bool(row.error) is (outcome != "answered")


def test_an_answer_that_is_complete_when_its_budget_ends_is_answered(
    plan: Plan, cell: PlannedCell, prompt: Prompt
) -> None:
    row = make_row(plan, cell, prompt, right(prompt, text=f"{prompt.case.gold}. And", stop="length"), 1)
    assert (row.outcome, row.correct) == ("answered", True)


def test_a_row_has_the_place_and_the_ids_of_its_cell(plan: Plan, cell: PlannedCell, prompt: Prompt) -> None:
    for row in (
        make_row(plan, cell, prompt, right(prompt), 3),
        make_row(plan, cell, prompt, Failure("timeout", "too slow"), 3),
        failed_row(plan, cell, Failure("not_built", "too short"), 3),
    ):
        assert (row.cell_id, row.pair_id, row.attempt) == (cell.cell_id, cell.pair_id, 3)
        assert (row.kv, row.length, row.trial, row.depth) == ("bf16", 512, 0, cell.case.depth)
        assert row.expected == cell.case.expected


def test_what_a_row_costs(plan: Plan, cell: PlannedCell, prompt: Prompt) -> None:
    def cost(reply: Reply, *, cached: bool = False) -> float | None:
        return make_row(plan, cell, prompt, reply, 1, answer_cached=cached).cost_usd

    known = right(prompt)
    assert cost(known) == pytest.approx((prompt.token_count * 2 + 3 * 10) / 1e6)
    assert cost(known, cached=True) == 0.0
    assert cost(right(prompt, output_tokens=None)) is None, "what is not known is not zero"
    assert make_row(replace(plan, prices=None), cell, prompt, known, 1).cost_usd is None


def test_a_key_in_an_error_is_redacted(plan: Plan, cell: PlannedCell, prompt: Prompt) -> None:
    row = make_row(plan, cell, prompt, Failure("auth", "the key sk-0123456789abcdef is wrong"), 1)
    assert "the key" in str(row.error)
    assert "0123456789" not in str(row.error)
    assert row.error_kind == "auth"
