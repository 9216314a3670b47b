"""Filler text: five short sentences in a circle."""

from __future__ import annotations

from itertools import islice

import pytest

from niah.errors import ConfigError
from niah.haystacks.noise import PLUGIN, SENTENCES, NoiseOptions, open_noise


def test_it_says_the_five_sentences_over_and_over() -> None:
    text = "".join(islice(open_noise(NoiseOptions(), "").segments(0), 11))
    assert text == " ".join((*SENTENCES, *SENTENCES, SENTENCES[0]))


def test_a_stream_only_starts_elsewhere() -> None:
    noise = PLUGIN.open(PLUGIN.options(), "")
    assert [next(iter(noise.segments(stream))) for stream in (0, 1, 5, 7, -1)] == [
        SENTENCES[0],
        SENTENCES[1],
        SENTENCES[0],
        SENTENCES[2],
        SENTENCES[4],
    ]
    assert noise.repeats


def test_sentences_are_short_and_hold_no_figures() -> None:
    assert len(set(SENTENCES)) == 5
    assert all(len(s.split()) <= 5 and s.endswith(".") and not any(c.isdigit() for c in s) for s in SENTENCES)


def test_an_argument_is_refused() -> None:
    with pytest.raises(ConfigError, match="'noise' takes no argument, but got 'loud'"):
        open_noise(NoiseOptions(), "loud")
