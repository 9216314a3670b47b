"""Limits on money and tokens: what would pass them is not asked."""

from __future__ import annotations

from typing import Any

import pytest

from niah.runner.budget import Spending
from niah.runner.plan import Plan
from niah.types import Failure
from tests.helpers.made_rows import make_row
from tests.helpers.scripted import planned, right

PRICE = {"input_usd": 2.0, "output_usd": 10.0, "cached_usd": 0.2}


def _spending(rows: Any = (), *, beside: tuple[float, int] = (0.0, 0), **limits: Any) -> tuple[Plan, Spending]:
    plan = planned(trials=4, price=PRICE, **limits)
    return plan, Spending.of(plan, rows, *beside)


def test_without_a_limit_everything_is_admitted() -> None:
    plan, spending = _spending()
    assert all(spending.admit(group, 2) for group in plan.groups)
    assert spending.admit_canary()


def test_what_is_in_flight_counts_until_it_is_settled() -> None:
    # two questions of 512 tokens each, answers included
    plan, spending = _spending(max_tokens=1_500)
    first, second, third, _ = plan.groups
    assert spending.admit(first, 2)
    spending.settle(first)
    assert spending.admit(second, 2), "the first is settled, and no row of it was billed"
    assert not spending.admit(third, 2)
    assert "the limit of 1,500 tokens" in spending.why
    spending.settle(second)
    assert not spending.admit(third, 1), "once refused, everything is"


@pytest.mark.parametrize("limit", ["max_cost", "max_tokens"])
def test_the_bill_never_passes_the_limit(limit: str) -> None:
    limits: dict[str, Any] = {"max_cost": 0.004, "max_tokens": 2_200}
    value = limits[limit]
    plan, spending = _spending(**{limit: value})
    asked = 0
    for group in plan.groups:
        if not spending.admit(group, 2):
            break
        for prompt in plan.builder.prompts(group):
            reply = right(prompt, output_tokens=prompt.answer_budget)
            spending.beside([reply])
        spending.settle(group)
        asked += 1
    assert 0 < asked < len(plan.groups)
    assert 0 < (spending.usd if limit == "max_cost" else spending.tokens) <= value
    assert f"the limit of {'$0.004' if limit == 'max_cost' else '2,200 tokens'}" in spending.why


def test_canaries_count_too() -> None:
    _, spending = _spending(max_tokens=4 * 256)
    assert not spending.admit_canary(), "four canaries and their answers"


def test_earlier_parts_of_the_run_count() -> None:
    billed = {"engine_prompt_tokens": 500, "output_tokens": 10, "cost_usd": 0.25}
    rows = [
        make_row("bf16", 512, 0.0, 0, None, **billed),
        make_row("bf16", 512, 0.0, 0, correct=True, attempt=2, **billed),
        make_row("bf16", 512, 1.0, 0, correct=True, answer_cached=True, **billed),
    ]
    _, spending = _spending(rows, beside=(0.125, 7))
    assert (spending.usd, spending.tokens) == (0.625, 1_027), "superseded rows were paid for, cached answers were not"
    assert (spending.beside_usd, spending.beside_tokens) == (0.125, 7)


def test_replies_without_a_row_are_billed_by_what_they_say() -> None:
    plan, spending = _spending()
    prompt = plan.builder.prompts(plan.groups[0])[0]
    spending.beside(
        [
            right(prompt, prompt_tokens=100, output_tokens=10, cached_tokens=50),
            right(prompt, prompt_tokens=None),
            Failure("timeout", "too slow"),
        ]
    )
    assert spending.beside_tokens == spending.tokens == 110
    assert spending.usd == spending.beside_usd == pytest.approx((50 * 2 + 50 * 0.2 + 10 * 10) / 1e6)
