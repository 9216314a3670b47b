from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from niah.errors import CellError, ConfigError
from niah.prompts.builder import build_context, context_text, min_length, overhead_tokens
from niah.prompts.segments import TRAIL, Segmented, tokenize
from niah.prompts.tokens import COMPLETION, Template, Tokenizer, WordTokenizer
from niah.types import Case, Needle
from tests.helpers.small_tokenizers import KINDS, Lines, Village, tokenizer

CHAT = Template("chat", "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n")
NUMBERS = {"Oslo": "8471926", "Rome": "1203344", "Quito": "5550123"}


def cases(depths: dict[str, float], instruction: str = "Numbers are hidden below.") -> list[Case]:
    needles = tuple(
        Needle(depth, f"The special magic number for {key} is {NUMBERS[key]}.", key, NUMBERS[key])
        for key, depth in depths.items()
    )
    case = Case(
        depth=0.0,
        needles=needles,
        instruction=instruction,
        question="",
        answer_prefix="The number is",
        expected=(),
        gold="",
        distractors=(),
        scorer="exact",
    )
    return [
        replace(
            case,
            depth=needle.depth,
            question=f"What is the number for {needle.key}{' please' * i}?",
            expected=(needle.value,),
            gold=f" {needle.value}",
        )
        for i, needle in enumerate(needles)
    ]


def village(tok: Tokenizer, *, every_line: bool = False, need: int = 4000) -> Segmented:
    return tokenize(Village(every_line=every_line), 0, tok, need)


@pytest.mark.parametrize("every_line", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_exact_to_the_token(kind: str, every_line: bool) -> None:
    tok = tokenizer(kind)
    made = village(tok, every_line=every_line)
    asked = cases({"Oslo": 0.0, "Rome": 0.4, "Quito": 1.0})
    for length in (900, 901, 902, 2048):
        prompts = build_context(tok, CHAT, made, asked, length, 24)
        assert [p.token_count + p.answer_budget for p in prompts] == [length] * 3
        assert all(p.context is prompts[0].context for p in prompts)
        longest = max(prompts, key=lambda p: len(p.tail))
        # the longest question gets the least answer budget, and no more than needles may save by their places
        assert 24 <= longest.answer_budget <= 24 + 6
        assert min(p.answer_budget for p in prompts) == longest.answer_budget


@pytest.mark.parametrize("kind", ["words", "gpt2", "gemma"])
def test_prompt_is_what_its_text_tokenises_to(kind: str) -> None:
    tok = tokenizer(kind)
    prompt = build_context(tok, CHAT, village(tok), cases({"Oslo": 0.0, "Rome": 0.5, "Quito": 1.0}), 1500, 24)[1]
    assert tok.encode(context_text(prompt, tok)) == prompt.ids()


@pytest.mark.parametrize("every_line", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_reads_naturally(kind: str, every_line: bool) -> None:
    tok = tokenizer(kind)
    prompts = build_context(
        tok, CHAT, village(tok, every_line=every_line), cases({"Oslo": 0.0, "Rome": 0.5, "Quito": 1.0}), 1600, 24
    )
    text = context_text(prompts[0], tok)
    assert text.startswith(
        "<|im_start|>user\nNumbers are hidden below.\n\nThe special magic number for Oslo is 8471926.\n\n"
    )
    end = (
        "The special magic number for Quito is 5550123.\n\nWhat is the number for Oslo?"
        "<|im_end|>\n<|im_start|>assistant\nThe number is"
    )
    assert text.endswith((" " + end, "\n\n" + end))
    before, after = text.split("The special magic number for Rome is 1203344.")
    assert before[-1] in " \n"
    assert before[-2] in ".\n"
    assert after[0] in " \n"
    assert "\n\n\n" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_haystack_never_repeats_a_sentence(kind: str) -> None:
    tok = tokenizer(kind)
    made = village(tok)
    for length in range(900, 920):
        text = context_text(build_context(tok, CHAT, made, cases({"Oslo": 0.5}), length, 16)[0], tok)
        body = text.split("below.\n\n")[1].split("\n\nWhat is")[0]
        sentences = [s.strip() for s in body.replace("\n\n", " ").split(". ")]
        assert len(sentences) == len(set(sentences)) > 5


def test_placements_point_at_the_needles() -> None:
    tok = tokenizer("gpt2")
    asked = cases({"Rome": 0.75, "Oslo": 0.25})
    prompt = build_context(tok, CHAT, village(tok), asked, 2000, 16)[0]
    assert [place.key for place in prompt.placements] == ["Oslo", "Rome"]
    ids = prompt.ids()
    haystack = len(prompt.context) - sum(place.token_count for place in prompt.placements)
    haystack -= len(tok.encode(CHAT.prefix + asked[0].instruction))
    for place in prompt.placements:
        needle = next(n for n in asked[0].needles if n.key == place.key)
        assert tok.decode(ids[place.token_offset : place.token_offset + place.token_count]) == " " + needle.text
        assert place.depth == needle.depth
        assert abs(place.depth_real - place.depth) * haystack < 60
    assert prompt.depth_real == prompt.placements[1].depth_real


def test_ends_of_the_depth_range() -> None:
    tok = tokenizer("gpt2")
    prompts = build_context(tok, CHAT, village(tok), cases({"Oslo": 0.0, "Rome": 1.0}), 1200, 16)
    assert [p.depth_real for p in prompts] == [0.0, 1.0]


def test_needles_may_share_a_boundary_in_their_order() -> None:
    for every_line in (False, True):
        for kind in ("gpt2", "llama3"):
            tok = tokenizer(kind)
            asked = cases({"Oslo": 0.5, "Rome": 0.5, "Quito": 0.500001})
            prompt = build_context(tok, CHAT, village(tok, every_line=every_line), asked, 1500, 16)[0]
            together = " ".join(needle.text for needle in asked[0].needles)
            assert together in context_text(prompt, tok)
            assert len({place.depth_real for place in prompt.placements}) == 1


def test_two_settings_see_the_same_prompt_whatever_else_is_in_the_run() -> None:
    for kind in ("gpt2", "llama3"):
        tok = tokenizer(kind)
        asked = cases({"Oslo": 0.3})
        one = build_context(tok, CHAT, village(tok, need=900), asked, 1000, 16)[0]
        two = build_context(tok, CHAT, village(tok, need=50_000), asked, 1000, 16)[0]
        assert one.sha256 == two.sha256


def test_hashes() -> None:
    tok = WordTokenizer()
    first, second = build_context(tok, CHAT, village(tok), cases({"Oslo": 0.2, "Rome": 0.8}), 1000, 16)
    ids = first.ids()
    assert first.sha256 == hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()
    assert first.context_key == second.context_key
    assert first.sha256 != second.sha256
    other = build_context(tok, CHAT, village(tok), cases({"Oslo": 0.2, "Rome": 0.9}), 1000, 16)[0]
    assert other.context_key != first.context_key


@pytest.mark.parametrize("kind", KINDS)
def test_gold_continues_the_tail(kind: str) -> None:
    tok = tokenizer(kind)
    prompt = build_context(tok, CHAT, village(tok), cases({"Oslo": 0.5}), 1000, 16)[0]
    assert tok.decode([*prompt.tail, *prompt.gold]).endswith("The number is 8471926")
    assert tok.encode(tok.decode([*prompt.tail, *prompt.gold])) == [*prompt.tail, *prompt.gold]


def test_gold_that_would_fuse_with_the_tail_starts_afresh() -> None:
    tok = WordTokenizer()
    asked = [replace(case, answer_prefix="The number was", gold="berg") for case in cases({"Oslo": 0.5})]
    prompt = build_context(tok, CHAT, village(tok), asked, 1000, 16)[0]
    assert tok.decode(prompt.tail).endswith("was")
    assert tok.encode(" wasberg") != tok.encode(" was") + tok.encode("berg")
    assert prompt.gold == tuple(tok.encode("berg"))


def test_completion_keeps_a_space_before_the_reply() -> None:
    tok = tokenizer("gpt2")
    prompt = build_context(tok, COMPLETION, village(tok), cases({"Oslo": 0.5}), 1000, 16)[0]
    text = context_text(prompt, tok)
    assert text.startswith("Numbers are hidden below.\n\n")
    assert text.endswith("What is the number for Oslo? The number is")
    bare = [replace(case, answer_prefix="", gold="8471926") for case in cases({"Oslo": 0.5})]
    prompt = build_context(tok, COMPLETION, village(tok), bare, 1000, 16)[0]
    assert context_text(prompt, tok).endswith("What is the number for Oslo?")
    assert tok.decode(prompt.gold) == " 8471926"


def test_without_instruction_or_template() -> None:
    for kind in ("gpt2", "llama3"):
        tok = tokenizer(kind)
        prompt = build_context(tok, COMPLETION, village(tok), cases({"Oslo": 0.5}, instruction=""), 1000, 16)[0]
        assert prompt.token_count + prompt.answer_budget == 1000
        assert context_text(prompt, tok).lstrip().startswith(village(tok).pieces[0].strip())


def test_a_haystack_without_spaces() -> None:
    tok = WordTokenizer()
    made = tokenize(Lines([f"村人{chr(0x4E00 + i)}は橋を渡った。" for i in range(300)]), 0, tok, 1000)
    prompt = build_context(tok, CHAT, made, cases({"Oslo": 0.5}), 1000, 16)[0]
    assert "。 The special magic number for Oslo is 8471926. 村人" in context_text(prompt, tok)


def even_lines() -> list[str]:
    """Sentences that all have as many tokens, so that only a cut fills what is left; their words differ in order."""
    rng, words = Random(0), ["met", "one", "cat", "and", "two", "dogs", "at", "the", "old", "inn", "carefully"]
    return [f"{' ' if i else ''}Man {i:03d} {' '.join(rng.sample(words, len(words)))}." for i in range(400)]


def test_a_cut_falls_before_a_word() -> None:
    tok = WordTokenizer()
    lines = even_lines()
    made = tokenize(Lines(lines), 0, tok, 1000)
    assert len(set(made.offsets[2:] - made.offsets[1:-1])) == 1
    endings = set()
    for length in range(1000, 1012):
        prompt = build_context(tok, CHAT, made, cases({"Oslo": 0.5}), length, 16)[0]
        assert prompt.token_count + prompt.answer_budget == length
        body = context_text(prompt, tok).split("\n\nWhat is", maxsplit=1)[0]
        last = body.rsplit(". ", 1)[1]
        assert any(line.strip().startswith(last + " ") or line.strip() in {last, last + "."} for line in lines)
        endings.add(last)
    assert len(endings) > 8


def test_a_needle_after_a_cut_starts_a_paragraph() -> None:
    tok = WordTokenizer()
    made = tokenize(Lines(even_lines()), 0, tok, 1000)
    texts = [
        context_text(build_context(tok, CHAT, made, cases({"Oslo": 1.0}), length, 16)[0], tok)
        for length in range(1000, 1008)
    ]
    assert sum("\n\nThe special magic number for Oslo is 8471926.\n\nWhat" in text for text in texts) >= 6


def test_a_cut_keeps_characters_whole() -> None:
    tok = tokenizer("gpt2")
    # one length for all and no spaces: a character is three tokens here, and no place starts a word
    made = tokenize(Lines(["村人村人橋橋渡渡村人村人橋橋渡渡。"] * 200), 0, tok, 1000)
    for length in range(1000, 1012):
        prompt = build_context(tok, CHAT, made, cases({"Oslo": 0.5}), length, 16)[0]
        assert prompt.token_count + prompt.answer_budget == length
        assert 16 <= prompt.answer_budget < 16 + 4 + 6
        assert "\ufffd" not in context_text(prompt, tok)


def test_hidden_needles_are_placed_and_not_asked() -> None:
    tok = WordTokenizer()
    two = cases({"Oslo": 0.2, "Rome": 0.8})
    needles = (two[0].needles[0], replace(two[0].needles[1], asked=False))
    prompt = build_context(tok, CHAT, village(tok), [replace(two[0], needles=needles)], 1000, 16)[0]
    assert [(place.key, place.asked) for place in prompt.placements] == [("Oslo", True), ("Rome", False)]


def test_shortest_length() -> None:
    for kind in KINDS:
        tok = tokenizer(kind)
        made = village(tok, every_line=True)
        asked = cases({"Oslo": 0.0, "Rome": 0.5, "Quito": 1.0})
        shortest = min_length(tok, CHAT, made, asked, 20)
        assert shortest == overhead_tokens(tok, CHAT, made, asked, 20) + int(made.offsets[1])
        assert build_context(tok, CHAT, made, asked, shortest, 20)[0].token_count <= shortest - 20
        with pytest.raises(ConfigError) as caught:
            build_context(tok, CHAT, made, asked, shortest - 40, 20)
        message = str(caught.value)
        assert f"length {shortest - 40} is too short" in message
        assert "answer 20" in message
        assert f"one haystack sentence at least {made.offsets[1]}" in message


def test_haystack_too_short() -> None:
    tok = WordTokenizer()
    made = tokenize(Village(limit=30), 0, tok, 100)
    with pytest.raises(ConfigError, match=f"the haystack has {made.token_total}"):
        build_context(tok, CHAT, made, cases({"Oslo": 0.5}), 9000, 16)


def test_the_whole_source_can_be_used() -> None:
    tok = tokenizer("llama3")
    made = tokenize(Village(limit=30, every_line=True), 0, tok, 100)
    asked = cases({"Oslo": 0.5})
    length = overhead_tokens(tok, CHAT, made, asked, 16) + made.token_total - 5
    prompt = build_context(tok, CHAT, made, asked, length, 16)[0]
    assert prompt.token_count + prompt.answer_budget == length
    assert TRAIL in made.kinds


def test_cases_must_belong_together() -> None:
    tok = WordTokenizer()
    made = village(tok)
    with pytest.raises(ConfigError, match="must share needles"):
        build_context(tok, CHAT, made, [*cases({"Oslo": 0.5}), *cases({"Rome": 0.5})], 1000, 16)
    with pytest.raises(ConfigError, match="nothing to ask"):
        build_context(tok, CHAT, made, [], 1000, 16)
    stray = [replace(case, expected=("x",), depth=0.1) for case in cases({"Oslo": 0.5})]
    with pytest.raises(ConfigError, match="does not hold"):
        build_context(tok, CHAT, made, stray, 1000, 16)


def test_an_answer_given_away_is_noticed() -> None:
    tok = WordTokenizer()
    made = tokenize(Lines(["The sum was 8471926 then."] + [f" Line {i} is here." for i in range(500)]), 0, tok, 900)
    with pytest.raises(CellError, match="stands 2 times") as caught:
        build_context(tok, CHAT, made, cases({"Oslo": 0.5}), 1000, 16)
    assert caught.value.kind == "needle_lost"
    with pytest.raises(CellError, match="stands 2 times"):
        build_context(tok, CHAT, village(tok), cases({"Oslo": 0.5}, instruction="It is 8471926."), 1000, 16)


class Forgetful(WordTokenizer):
    """Loses capitals on the way back, as an uncased model's tokenizer does."""

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode(ids).lower()


def test_a_needle_that_does_not_arrive_is_noticed() -> None:
    tok = Forgetful()
    with pytest.raises(CellError, match="is not in its tokens") as caught:
        build_context(tok, CHAT, village(tok), cases({"Oslo": 0.5}), 1000, 16)
    assert caught.value.kind == "needle_lost"
