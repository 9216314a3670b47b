from __future__ import annotations

import re
from random import Random

import pytest

from niah.errors import ConfigError
from niah.prompts.words import CITIES, VALUE_WORDS, draw_free, draw_keys, draw_number, draw_values


def nothing(text: str) -> bool:
    return False


def test_pools() -> None:
    assert len(CITIES) >= 250
    assert len(VALUE_WORDS) >= 400
    for pool in (CITIES, VALUE_WORDS):
        assert len(set(pool)) == len(pool)
        assert all(word.isascii() and word.isalpha() for word in pool)
        assert not {word for word in pool if word + "s" in pool}
    assert all(city == city.capitalize() for city in CITIES)
    assert all(word == word.lower() for word in VALUE_WORDS)
    assert not {city.lower() for city in CITIES} & set(VALUE_WORDS)


def test_keys_are_distinct_and_seeded() -> None:
    keys = draw_keys(100, 1, nothing)
    assert len(set(keys)) == 100
    assert keys == draw_keys(100, 1, nothing)
    assert keys != draw_keys(100, 2, nothing)
    assert draw_keys(40, 1, nothing) == keys[:40]


def test_a_colliding_key_is_replaced_and_the_others_stay() -> None:
    keys = draw_keys(5, 1, nothing)
    again = draw_keys(5, 1, lambda text: text == keys[2])
    assert again[2] not in keys
    assert [*again[:2], *again[3:]] == [*keys[:2], *keys[3:]]


def test_too_many_keys() -> None:
    assert len(draw_keys(len(CITIES), 1, nothing)) == len(CITIES)
    with pytest.raises(ConfigError, match=f"there are {len(CITIES)}"):
        draw_keys(len(CITIES) + 1, 1, nothing)
    with pytest.raises(ConfigError, match="does not hold"):
        draw_keys(len(CITIES), 1, lambda text: text == "Oslo")


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("number", r"[1-9]\d{6}"),
        ("word", r"[a-z]+"),
        ("uuid", r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
    ],
)
def test_values(kind: str, shape: str) -> None:
    values = draw_values(kind, 200, 3, nothing)  # type: ignore[arg-type]
    assert len(set(values)) == 200
    assert all(re.fullmatch(shape, value) for value in values)
    # a collision replaces one value only
    again = draw_values(kind, 200, 3, lambda text: text == values[7])  # type: ignore[arg-type]
    assert again[7] not in values
    assert [*again[:7], *again[8:]] == [*values[:7], *values[8:]]


def test_a_haystack_that_holds_everything() -> None:
    with pytest.raises(ConfigError, match="all of 1000 numbers"):
        draw_values("number", 1, 1, lambda text: True)


def test_numbers_do_not_start_with_zero() -> None:
    rng = Random(0)
    assert {len(draw_number(5, rng)) for _ in range(200)} == {5}
    assert draw_free(iter(["a", "b"]).__next__, lambda text: text == "a", "letters") == "b"
