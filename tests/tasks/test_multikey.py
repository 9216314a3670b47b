from __future__ import annotations

import pytest
from pydantic import ValidationError

from niah.errors import ConfigError
from niah.prompts.task import ContextLayout
from niah.prompts.words import CITIES
from niah.tasks.multikey import MultikeyOptions, fill_gaps, layouts, make

ELEVEN = [i / 10 for i in range(11)]


def nothing(text: str) -> bool:
    return False


def test_one_context_holds_all_depths() -> None:
    assert layouts(MultikeyOptions(), ELEVEN) == [ContextLayout(tuple(ELEVEN))]


def test_few_depths_get_hidden_needles_in_the_widest_gaps() -> None:
    assert layouts(MultikeyOptions(), [0.0, 0.5, 1.0]) == [
        ContextLayout((0.0, 0.5, 1.0), (0.125, 0.25, 0.375, 0.625, 0.75))
    ]
    assert layouts(MultikeyOptions(keys=1), [0.5]) == [ContextLayout((0.5,))]
    assert fill_gaps([0.0, 0.2], 2) == (0.4, 0.6)
    assert fill_gaps([0.5], 3) == (0.125, 0.25, 0.75)


def test_more_depths_than_keys_are_spread_over_contexts() -> None:
    made = layouts(MultikeyOptions(keys=4), ELEVEN)
    assert [layout.asked for layout in made] == [(0.0, 0.3, 0.6, 0.9), (0.1, 0.4, 0.7, 1.0), (0.2, 0.5, 0.8)]
    assert [len(layout.asked) + len(layout.hidden) for layout in made] == [4, 4, 4]
    assert made[2].hidden == (0.35,)


def test_more_keys_than_names() -> None:
    with pytest.raises(ConfigError, match=f"keys=1000 is more than the {len(CITIES)} names"):
        layouts(MultikeyOptions(keys=1000), ELEVEN)
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        MultikeyOptions(keys=0)
    with pytest.raises(ValidationError, match="Extra inputs"):
        MultikeyOptions.model_validate({"kees": 3})


def test_a_context() -> None:
    cases = make(MultikeyOptions(), 5, ContextLayout((0.2, 0.8), (0.5,)), nothing)
    first, second = cases
    assert first.needles == second.needles
    assert [(needle.depth, needle.asked) for needle in first.needles] == [(0.2, True), (0.5, False), (0.8, True)]
    key, value = first.needles[0].key, first.needles[0].value
    assert first.needles[0].text == f"The special magic number for {key} is {value}."
    assert first.question == f"What is the special magic number for {key} mentioned in the text above?"
    assert first.answer_prefix == f"The special magic number for {key} is"
    assert (first.expected, first.gold) == ((value,), f" {value}")
    assert first.distractors == (first.needles[1].value, first.needles[2].value)
    assert second.expected == (first.needles[2].value,)
    assert (first.depth, second.depth) == (0.2, 0.8)


def test_options_change_the_case() -> None:
    layout = ContextLayout((0.5,), (0.1,))
    bare = make(MultikeyOptions(answer_prefix=False), 5, layout, nothing)[0]
    assert bare.answer_prefix == ""
    assert bare.gold == bare.expected[0]
    word = make(MultikeyOptions(values="word"), 5, layout, nothing)[0]
    assert word.question.startswith("What is the special magic word for ")
    assert "magic words" in word.instruction
    uuid = make(MultikeyOptions(values="uuid"), 5, layout, nothing)[0]
    assert len(uuid.expected[0]) == 36


def test_the_order_of_asked_depths_is_kept() -> None:
    cases = make(MultikeyOptions(), 5, ContextLayout((0.8, 0.2)), nothing)
    assert [case.depth for case in cases] == [0.8, 0.2]
    assert cases[0].needles == cases[1].needles
