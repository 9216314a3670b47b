from __future__ import annotations

import pytest
from pydantic import ValidationError

from niah.errors import ConfigError
from niah.prompts.task import ContextLayout
from niah.tasks.single import SingleOptions, layouts, make

OWN = {
    "needle": " The best thing to do in Lisbon is to ride tram 28. ",
    "question": "What is the best thing to do in Lisbon?",
    "answer": "ride tram 28",
}


def nothing(text: str) -> bool:
    return False


def test_one_needle_moves() -> None:
    options = SingleOptions()
    made = layouts(options, [1.0, 0.0, 0.5])
    assert made == [ContextLayout((0.0,)), ContextLayout((0.5,)), ContextLayout((1.0,))]
    cases = [make(options, 7, layout, nothing)[0] for layout in made]
    assert {case.needles[0].text for case in cases} == {cases[0].needles[0].text}
    assert [case.needles[0].depth for case in cases] == [0.0, 0.5, 1.0]
    assert cases[0].distractors == ()
    assert "a special magic number for a city" in cases[0].instruction


def test_a_fact_of_your_own() -> None:
    options = SingleOptions.model_validate(OWN)
    case = make(options, 7, ContextLayout((0.5,)), nothing)[0]
    assert case.needles[0].text == "The best thing to do in Lisbon is to ride tram 28."
    assert case.question == OWN["question"]
    assert case.expected == ("ride tram 28",)
    assert (case.gold, case.answer_prefix) == ("ride tram 28", "")


@pytest.mark.parametrize("what", ["needle", "answer"])
def test_a_fact_that_the_haystack_holds_already(what: str) -> None:
    options = SingleOptions.model_validate(OWN)
    with pytest.raises(ConfigError, match=f"the {what} '.*' stands in the haystack already"):
        make(options, 7, ContextLayout((0.5,)), lambda text: text == OWN[what].strip())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"answer": None}, "missing or empty: answer"),
        ({"needle": None, "question": None}, "missing or empty: needle, question"),
        ({"question": "  "}, "missing or empty: question"),
        ({"needle": " ", "question": "", "answer": ""}, "missing or empty: needle, question, answer"),
        ({"answer": "take a tram"}, "does not stand in the needle"),
        ({"answer": "ride"}, None),
        ({"answer": "rid"}, "does not stand in the needle"),
        ({"answer": "Lisbon"}, "stands in the question"),
        ({"needle": "One fact is told.", "question": "What?", "answer": "fact"}, "stands in the task's instruction"),
    ],
)
def test_facts_that_make_no_test(changes: dict[str, str | None], words: str | None) -> None:
    given = OWN | changes
    if words is None:
        assert SingleOptions.model_validate(given).answer == changes["answer"]
    else:
        with pytest.raises(ValidationError, match=words):
            SingleOptions.model_validate(given)
