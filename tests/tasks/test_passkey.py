from __future__ import annotations

import pytest
from pydantic import ValidationError

from niah.prompts.task import ContextLayout
from niah.tasks.passkey import PasskeyOptions, layouts, make


def nothing(text: str) -> bool:
    return False


@pytest.mark.parametrize("digits", [5, 6, 7])
def test_a_pass_key(digits: int) -> None:
    case = make(PasskeyOptions(digits=digits), 3, ContextLayout((0.4,)), nothing)[0]
    value = case.expected[0]
    assert len(value) == digits
    assert case.needles[0].text == f"The pass key is {value}. Remember it."
    assert (case.answer_prefix, case.gold) == ("The pass key is", f" {value}")
    again = make(PasskeyOptions(digits=digits), 3, ContextLayout((0.9,)), lambda text: text == value)[0]
    assert again.expected[0] != value


def test_options() -> None:
    case = make(PasskeyOptions(answer_prefix=False), 3, ContextLayout((0.4,)), nothing)[0]
    assert (case.answer_prefix, case.gold) == ("", case.expected[0])
    with pytest.raises(ValidationError):
        PasskeyOptions(digits=4)
    assert layouts(PasskeyOptions(), [0.5, 0.0]) == [ContextLayout((0.0,)), ContextLayout((0.5,))]
