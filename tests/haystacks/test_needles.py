"""A haystack of distractors: the needles' shape, keys that no needle has, each once."""

from __future__ import annotations

import re
from itertools import islice

import pytest

from niah.errors import ConfigError
from niah.haystacks.needles import ADJECTIVES, NOUNS, PLUGIN, Needles, NeedlesOptions, open_needles
from niah.prompts.words import CITIES

SHAPE = re.compile(r"(?:\n\n| |)The special magic number for ([a-z]+(?:-[a-z]+)+) is ([1-9]\d{6})\.")


def _keys(count: int, *, seed: int = 0, stream: int = 0) -> list[str]:
    found = [SHAPE.fullmatch(s) for s in islice(Needles(NeedlesOptions(seed=seed)).segments(stream), count)]
    assert all(found)
    return [m[1] for m in found if m]


def test_every_sentence_has_the_shape_and_its_own_key() -> None:
    # more than there are pairs of words: the keys then get a third word
    pairs = len(ADJECTIVES) * len(NOUNS)
    keys = _keys(pairs + 500)
    assert len(set(keys)) == len(keys)
    assert {k.count("-") for k in keys[:pairs]} == {1}
    assert {k.count("-") for k in keys[pairs:]} == {2}


def test_keys_are_never_the_cities_that_needles_ask_for() -> None:
    assert not {c.lower() for c in CITIES} & {*ADJECTIVES, *NOUNS}


def test_words_are_not_doubled() -> None:
    assert len(set(ADJECTIVES)) == len(ADJECTIVES)
    assert len(set(NOUNS)) == len(NOUNS)


def test_seed_and_stream_choose_keys() -> None:
    assert len({tuple(_keys(20, seed=seed, stream=stream)) for seed in (0, 1) for stream in (0, 1)}) == 4
    assert Needles(NeedlesOptions(seed=1)).digest != Needles(NeedlesOptions()).digest


def test_a_paragraph_has_eight_sentences() -> None:
    text = "".join(islice(Needles(NeedlesOptions()).segments(0), 24))
    assert [p.count("The special") for p in text.split("\n\n")] == [8, 8, 8]


def test_the_text_is_the_same_everywhere() -> None:
    assert _keys(3) == ["shiny-mirror", "noble-stream", "daring-nutmeg"]


def test_an_argument_is_refused() -> None:
    with pytest.raises(ConfigError, match="'needles' takes no argument"):
        open_needles(NeedlesOptions(), "x")
    assert next(iter(PLUGIN.open(PLUGIN.options(), "").segments(0))).startswith("The special")
