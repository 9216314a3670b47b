from __future__ import annotations

import pytest

from niah.runner.canary import judge

YES, NO = True, False


@pytest.mark.parametrize(
    ("right", "reference", "state"),
    [
        ([YES, YES, YES, YES], [YES, YES, YES, YES], "passed"),
        ([YES, YES, NO, NO], [YES, YES, YES, YES], "passed"),
        ([YES, NO, NO, NO], [YES, YES, YES, YES], "broken"),
        ([NO, NO, NO, NO], [YES, YES, NO, NO], "broken"),
        # what the reference cannot do either says nothing about the setting
        ([NO, NO, NO, NO], [YES, NO, NO, NO], "inconclusive"),
        ([NO, NO, YES, YES], [YES, YES, NO, NO], "broken"),
        ([YES, YES, YES, NO], None, "passed"),
        ([NO, NO, NO, NO], None, "inconclusive"),
    ],
)
def test_judgement(right: list[bool], reference: list[bool] | None, state: str) -> None:
    assert judge(right, reference)[0] == state


def test_a_failed_canary_says_nothing_but_all_failed_is_broken() -> None:
    assert judge([None, YES, YES, YES], [YES] * 4)[0] == "passed"
    assert judge([None, NO, NO, YES], [YES] * 4)[0] == "broken"
    assert judge([None] * 4, [YES] * 4)[0] == "broken"


def test_the_reason_names_failures_of_the_setting_itself() -> None:
    state, why = judge([None, None, None, NO], [YES] * 4)
    assert state == "inconclusive"
    assert "3 failed here" in why
