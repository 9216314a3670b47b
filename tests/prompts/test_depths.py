"""Depths in texts that are no sentences, with the bounds that a user may count on; and old prompts as they were."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from niah.errors import ConfigError
from niah.haystacks import needles, noise
from niah.haystacks.chronicle import plugin as chronicle
from niah.haystacks.text import Text
from niah.prompts.breaks import nearest_place, place
from niah.prompts.builder import build_context, context_text, min_length
from niah.prompts.haystack import Haystack
from niah.prompts.segments import CLOSED, Segmented, count_whole, tokenize
from niah.prompts.tokens import Template, Tokenizer
from niah.tasks import multikey, single
from niah.types import Prompt
from tests.helpers.odd_texts import NAMES, WORDY, odd_text
from tests.helpers.small_tokenizers import tokenizer

CHAT = Template("chat", "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n")
DEPTHS = tuple(n / 10 for n in range(11))
# share of the text that a needle may lie away from its depth, by length
BOUNDS = {1024: 0.02, 4096: 0.01}


@cache
def odd(name: str, kind: str) -> Segmented:
    return tokenize(Text(odd_text(name), repeat=False), 0, tokenizer(kind), 4096, may_end=True)


def prompts_of(task: Any, made: Segmented, tok: Tokenizer, length: int, seed: int = 1) -> Iterator[list[Prompt]]:
    options = task.PLUGIN.options()
    for layout in task.layouts(options, DEPTHS):
        cases = task.make(options, seed, layout, made.collides(length))
        yield build_context(tok, CHAT, made, cases, length, 24)


def check_prompt(prompt: Prompt, tok: Tokenizer, length: int, *, wordy: bool) -> None:
    assert prompt.token_count + prompt.answer_budget == length
    assert 24 <= prompt.answer_budget <= 24 + 64
    text, ids = context_text(prompt, tok), prompt.ids()
    assert "\ufffd" not in text
    for needle in prompt.case.needles:
        assert text.count(needle.text) == 1
        assert count_whole(text, needle.text) == 1
        assert count_whole(text, needle.value) == 1
    texts = {needle.key: needle.text for needle in prompt.case.needles}
    for spot in prompt.placements:
        if spot.depth in (0.0, 1.0):
            continue
        # without the white space that came with the needle
        own = tok.decode(ids[spot.token_offset : spot.token_offset + spot.token_count])
        start = text.index(texts[spot.key]) - (len(own) - len(own.lstrip()))
        before, after = text[:start], text[start + len(own) :]
        assert at_cluster_border(before, after), (before[-9:], after[:9])
        inside = is_word(before[-1]) and is_word(after[0])
        assert not (wordy and inside), (before[-9:], after[:9])


def at_cluster_border(before: str, after: str) -> bool:
    near = before[-300:] + after[:40]
    return min(300, len(before)) in {match.start() for match in regex.finditer(r"\X", near)}


def is_word(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char).startswith("M")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["words", "gpt2"])
def test_eleven_depths_are_eleven_places(name: str, kind: str) -> None:
    check_depths(name, kind)


@pytest.mark.parametrize("name", ["letters", "thai", "khmer", "emoji", "poetry"])
@pytest.mark.parametrize("kind", ["gemma", "llama3", "bare"])
def test_of_tokenizers_that_split_otherwise_too(name: str, kind: str) -> None:
    check_depths(name, kind)


def check_depths(name: str, kind: str) -> None:
    tok, made = tokenizer(kind), odd(name, kind)
    for task, length in ((single, 1024), (multikey, 1024), (multikey, 4096)):
        built = [prompt for group in prompts_of(task, made, tok, length) for prompt in group]
        assert max(abs(prompt.depth_real - prompt.case.depth) for prompt in built) <= BOUNDS[length], task
        assert len({prompt.depth_real for prompt in built}) == len(DEPTHS), task
        # a tokenizer that joins words has no place between them
        check_prompt(built[5], tok, length, wordy=name in WORDY and kind != "bare")


def test_full_stops_that_a_tokenizer_joins_with_what_follows() -> None:
    tok = tokenizer("bare")
    made = tokenize(noise.Noise(), 0, tok, 4096)
    assert made.mode == "offsets"
    assert (made.kinds == CLOSED).mean() > 0.9
    for task in (single, multikey):
        for length, bound in BOUNDS.items():
            built = [prompt for group in prompts_of(task, made, tok, length) for prompt in group]
            assert max(abs(prompt.depth_real - prompt.case.depth) for prompt in built) <= bound
            assert len({prompt.depth_real for prompt in built}) == len(DEPTHS)
            for prompt in built[::5]:
                check_prompt(prompt, tok, length, wordy=False)


# sha256 over the prompts' own, as they were before needles went inside sentences
OLD = {
    ("words", "chronicle"): "38e029750e307cd4",
    ("words", "noise"): "eb5b62c58debcbe8",
    ("words", "needles"): "e7b19616d1ad4134",
    ("gpt2", "noise"): "31b34fe45964f8ff",
    ("gpt2", "needles"): "64adf524358172a1",
    ("llama3", "noise"): "a864f04c2ad012ca",
    ("llama3", "needles"): "5540fe6fa6914438",
}


@pytest.mark.parametrize(("kind", "source"), OLD)
def test_texts_of_sentences_give_the_prompts_that_they_gave(kind: str, source: str) -> None:
    opened: dict[str, Haystack] = {
        "chronicle": chronicle.PLUGIN.open(chronicle.PLUGIN.options(), ""),
        "noise": noise.Noise(),
        "needles": needles.PLUGIN.open(needles.PLUGIN.options(), ""),
    }
    tok = tokenizer(kind)
    made = tokenize(opened[source], 0, tok, 16_384)
    hashes = [
        prompt.sha256
        for length in (1024, 4096)
        for task in (single, multikey)
        for group in prompts_of(task, made, tok, length)
        for prompt in group
    ]
    assert len(hashes) == 44
    assert hashlib.sha256("".join(hashes).encode()).hexdigest()[:16] == OLD[kind, source]


def test_coarse_is_a_matter_of_sentences_and_of_the_length() -> None:
    tok = tokenizer("words")
    lines = tokenize(chronicle.PLUGIN.open(chronicle.PLUGIN.options(), ""), 0, tok, 100_000)
    assert not any(lines.is_coarse(length) for length in (256, 1024, 8192, 100_000))
    letters = odd("letters", "words")
    assert letters.is_coarse(1024)
    # a long run does not change what a short one is
    longer = tokenize(Text(odd_text("letters"), repeat=True), 0, tok, 60_000, may_end=True)
    assert longer.is_coarse(1024)
    assert tokenize(Text(odd_text("long sentences"), repeat=True), 0, tok, 200_000).is_coarse(4096)
    # where a sentence is a small part of the prompt, its borders are near enough to every depth
    assert not tokenize(Text(odd_text("long sentences"), repeat=True), 0, tok, 200_000).is_coarse(200_000)


def test_a_first_sentence_longer_than_the_prompt_is_cut() -> None:
    tok, made = tokenizer("gpt2"), odd("thai without blanks", "gpt2")
    assert int(made.offsets[1]) > 1024
    cases = single.make(
        single.SingleOptions(), 1, single.layouts(single.SingleOptions(), (0.5,))[0], made.collides(512)
    )
    shortest = min_length(tok, CHAT, made, cases, 24)
    assert shortest < 512
    assert build_context(tok, CHAT, made, cases, shortest, 24)[0].token_count <= shortest - 24
    with pytest.raises(ConfigError, match="haystack text at least 64"):
        build_context(tok, CHAT, made, cases, shortest - 40, 24)


@pytest.mark.parametrize("kind", ["words", "gpt2", "gemma", "bare"])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(NAMES),
    depths=st.lists(st.integers(0, 1000).map(lambda n: n / 1000), min_size=1, max_size=14, unique=True),
    length=st.integers(900, 4096),
    seed=st.integers(0, 2**32),
)
def test_any_depths_of_any_text(kind: str, name: str, depths: list[float], length: int, seed: int) -> None:
    tok, made = tokenizer(kind), odd(name, kind)
    options = multikey.MultikeyOptions()
    for layout in multikey.layouts(options, depths):
        cases = multikey.make(options, seed, layout, made.collides(length))
        prompt = build_context(tok, CHAT, made, cases, length, 24)[0]
        check_prompt(prompt, tok, length, wordy=name in WORDY and kind != "bare")
        order = [spot.token_offset for spot in prompt.placements]
        assert order == sorted(order)
        assert all(abs(spot.depth_real - spot.depth) <= 0.03 for spot in prompt.placements)


def test_the_nearest_place_prefers_words_then_marks_then_characters() -> None:
    tok = tokenizer("words")

    def text_before(text: str, share: float) -> str:
        ids = tokenize(Text(text, repeat=True), 0, tok, 600, may_end=True).ids[:600]
        found = nearest_place(tok, ids, share * len(ids), 600)
        assert found is not None
        return tok.decode(ids[: found.at].tolist())

    assert text_before("river bridge lantern " * 400, 0.4).endswith(("river", "bridge", "lantern"))
    assert text_before("村人橋渡，" * 400, 0.4).endswith("，")
    assert text_before("村人橋渡" * 400, 0.4)[-1] in "村人橋渡"
    # a number stays whole where there is another mark
    assert text_before("12,345;" * 400, 0.4).endswith(";")


def test_no_place_inside_a_character() -> None:
    tok = tokenizer("gpt2")
    ids = tokenize(Text("村人橋渡" * 900, repeat=True), 0, tok, 600).ids[:600]
    found = [at for at in range(1, 600) if place(tok, ids, at) is not None]
    assert 0 < len(found) <= 600 / 2
    assert all("\ufffd" not in tok.decode(ids[2:at].tolist()) for at in found)
