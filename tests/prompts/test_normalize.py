from __future__ import annotations

from dataclasses import replace

import pytest

from niah.prompts.normalize import first_value, is_settled, judged_part, plain, value_shape
from niah.types import Case
from tests.scoring.test_exact import CASE, PREFIXED


def test_plain() -> None:
    assert plain("Ａ\u00a01２") == "a 12"


def test_judged_part() -> None:
    assert judged_part("\n one \ntwo\n", CASE) == "one \ntwo\n"
    assert judged_part("\n one \ntwo\n", PREFIXED) == "one "
    assert judged_part("  ", PREFIXED) == ""


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("8471926", "7-digit number"),
        ("12345", "5-digit number"),
        ("narwhal", "word"),
        ("1130DCC2-93b4-480d-a19e-361c502c2077", "uuid"),
        ("12 apples", "word"),
    ],
)
def test_shapes(value: str, shape: str) -> None:
    assert value_shape(value) == shape


@pytest.mark.parametrize(
    ("reply", "settled"),
    [
        ("", False),
        (" ", False),
        (" 847192", False),
        (" 8471926", False),
        (" 8471926.", True),
        (" 8471926,", True),
        (" 84719261", False),
        (" 8,471,926", False),
        (" 8,471,926,", False),
        (" 8,471,926, ", True),
        (" 8,471,926 a", True),
        (" 1203344 ", True),
        (" unknown", False),
        ("\n\n", False),
    ],
)
def test_settled_numbers(reply: str, settled: bool) -> None:
    assert is_settled(reply, CASE) is settled
    assert is_settled(reply, PREFIXED) is settled


def test_a_line_settles_only_after_a_prefix() -> None:
    assert is_settled(" unknown\n", PREFIXED)
    assert not is_settled(" unknown\n", CASE)
    assert is_settled(" 8471926\n", CASE)


def test_settled_words_and_uuids() -> None:
    word = replace(CASE, expected=("narwhal",), distractors=("zither",))
    assert [is_settled(reply, word) for reply in ("narwhal", "narwhals", "narwhal.", "zither ")] == [
        False,
        False,
        True,
        True,
    ]
    uuid = "1130dcc2-93b4-480d-a19e-361c502c2077"
    case = replace(CASE, expected=(uuid,))
    assert [is_settled(uuid + end, case) for end in ("", "0", ".")] == [False, False, True]


@pytest.mark.parametrize("case", [CASE, PREFIXED])
@pytest.mark.parametrize(
    "reply",
    [" 8,471,926, and 1203344.\nMore", "8471926.", "In 1999 it was 1203344, no 8471926", "12,847,192,6 8471926 x"],
)
def test_nothing_changes_once_settled(case: Case, reply: str) -> None:
    # what the reply says at the moment decoding may stop is what all of it says
    whole = first_value(reply, case)
    for end in range(len(reply) + 1):
        if is_settled(reply[:end], case):
            early = first_value(reply[:end], case)
            assert (early and early.value) == (whole and whole.value)
