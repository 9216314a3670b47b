"""Every scorer: bounds, a reason always, spacing and case that do not matter."""

from __future__ import annotations

import pytest

from niah import registry
from niah.types import Case, Needle

VALUE, OTHER = "8471926", "1112223"
NEEDLES = tuple(
    Needle(depth, f"The special magic number for {city} is {value}.", city, value)
    for depth, city, value in ((0.2, "Oslo", VALUE), (0.8, "Lima", OTHER))
)
CASE = Case(
    depth=0.2,
    needles=NEEDLES,
    instruction="Read the text.",
    question="What is the special magic number for Oslo mentioned in the text above?",
    answer_prefix="The special magic number for Oslo is",
    expected=(VALUE,),
    gold=f" {VALUE}",
    distractors=(OTHER,),
    scorer="exact",
)


@pytest.mark.parametrize("name", registry.names("scoring"))
@pytest.mark.parametrize(
    ("answer", "correct"),
    [
        (f" {VALUE}.", True),
        (f"{VALUE}", True),
        ("  8,471,926", True),
        (f" {OTHER}.", False),
        ("", False),
        (" I do not know.", False),
        (CASE.question, False),
        (f" 9{VALUE}", False),
        (f" {OTHER}, or {VALUE}", False),
    ],
)
def test_judgement(name: str, answer: str, correct: bool) -> None:
    score = registry.load("scoring", name).score(answer, CASE)
    assert score.correct is correct
    assert 0 <= score.value <= 1
    assert score.why
    assert score.scorer
    assert score.version >= 1
