from __future__ import annotations

from dataclasses import replace

import pytest

from niah.scoring.exact import PLUGIN, score
from niah.types import Case, Needle

OSLO = Needle(0.2, "The special magic number for Oslo is 8471926.", "Oslo", "8471926")
ROME = Needle(0.8, "The special magic number for Rome is 1203344.", "Rome", "1203344", asked=False)
CASE = Case(
    depth=0.2,
    needles=(OSLO, ROME),
    instruction="Numbers are hidden below.",
    question="What is the special magic number for Oslo mentioned in the text above?",
    answer_prefix="",
    expected=("8471926",),
    gold="8471926",
    distractors=("1203344",),
    scorer="exact",
)
PREFIXED = replace(CASE, answer_prefix="The special magic number for Oslo is")


@pytest.mark.parametrize(
    "answer",
    [
        "8471926",
        " 8471926.",
        "The special magic number for Oslo is 8471926, as the text says.",
        "8,471,926",
        "It is 8 471 926.",
        "8.471.926",
        "8'471'926",
        "８４７１９２６",
        "8\u202f471\u202f926 exactly",
        "**8471926**",
        "In 1999 there were 12 of them; the number is 8471926",
        "No. 12345678 is too long, 8471926 is right",
        "8471926 and not 1203344",
        "\n\n8471926",
    ],
)
def test_right(answer: str) -> None:
    got = score(answer, CASE)
    assert (got.value, got.correct, got.scorer, got.version) == (1.0, True, "exact", 2)
    assert got.why == "answered 8471926, as expected"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "the answer is empty; expected 8471926"),
        (" \n\t ", "the answer is empty; expected 8471926"),
        ("1203344", "answered 1203344, the value of Rome; expected 8471926"),
        ("1203344 or 8471926", "answered 1203344, the value of Rome; expected 8471926"),
        ("8471927", "answered 8471927, which is in no needle; expected 8471926"),
        ("84719261", "no 7-digit number in the answer '84719261'; expected 8471926"),
        ("847192", "no 7-digit number in the answer '847192'; expected 8471926"),
        ("12,847,192,6", "no 7-digit number in the answer '12,847,192,6'; expected 8471926"),
        ("8,471,926,000", "no 7-digit number in the answer '8,471,926,000'; expected 8471926"),
        ("I do not know.", "no 7-digit number in the answer 'i do not know.'; expected 8471926"),
        (
            CASE.question,
            f"no 7-digit number in the answer {CASE.question.lower()[:60] + '…'!r}; expected 8471926",
        ),
    ],
)
def test_wrong_and_why(answer: str, why: str) -> None:
    got = score(answer, CASE)
    assert (got.value, got.correct) == (0.0, False)
    assert got.why == why


def test_only_the_first_line_counts_after_a_prefix() -> None:
    answer = " not given.\nThe special magic number for Oslo is 8471926."
    assert score(answer, CASE).correct
    assert not score(answer, PREFIXED).correct
    assert score("\n 8471926.\nThe number for Rome is 1203344.", PREFIXED).correct


def test_words() -> None:
    case = replace(
        CASE,
        expected=("narwhal",),
        distractors=("zither", "sea otter"),
        needles=(replace(OSLO, value="narwhal"), replace(ROME, value="zither")),
    )
    assert score("It is Narwhal.", case).correct
    assert score("a narwhal, not a zither", case).correct
    assert score("zither, narwhal", case).why == "answered zither, the value of Rome; expected narwhal"
    assert score("narwhals", case).why == "neither 'narwhal' nor another needle's value is in the answer 'narwhals'"
    assert score("Sea\n otter", case).why == "answered sea otter, which is in no needle; expected narwhal"


def test_uuids() -> None:
    right, other = "1130dcc2-93b4-480d-a19e-361c502c2077", "b5436387-37c8-4c72-a0f0-7eff79b8856a"
    case = replace(CASE, expected=(right,), distractors=(other,))
    assert score(f"It is {right.upper()}.", case).correct
    assert not score(other, case).correct
    assert score(right[:-1], case).why.startswith("no uuid in the answer")
    assert score(right + "0", case).why.startswith("no uuid in the answer")


def test_phrases_and_several_accepted_answers() -> None:
    case = replace(CASE, expected=("eat a sandwich", "have lunch", "12"), distractors=())
    assert score("You should eat  a\nSandwich in the park.", case).correct
    assert score("Have lunch!", case).correct
    assert score("12", case).correct
    assert not score("eat", case).correct


def test_hostile_answers_do_not_fail() -> None:
    for answer in ("\x00", "(((", "9" * 10_000, "8471926" * 500, "\u202e8471926", ", " * 5000, "8," * 5000):
        assert score(answer, CASE).why


def test_plugin() -> None:
    assert (PLUGIN.name, PLUGIN.version, PLUGIN.score) == ("exact", 2, score)


def test_an_echo_is_no_retrieval() -> None:
    first = Case(
        depth=0.0,
        needles=(),
        instruction="The text below hides a special magic number.",
        question="What is it?",
        answer_prefix="",
        expected=("8471926",),
        gold="8471926",
        distractors=(),
        scorer="exact",
    )
    echo = "The text below hides a  special magic number.\n\nThe special magic number is 8471926. What is it?"
    judged = score(echo, first)
    assert (judged.value, judged.correct) == (0.0, False)
    assert "echo" in judged.why
    assert score("You asked: What is it? 8471926.", first).correct
