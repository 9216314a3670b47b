from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from niah.errors import ConfigError
from niah.haystacks import noise
from niah.prompts import segments
from niah.prompts.haystack import Haystack
from niah.prompts.segments import CLOSED, LEAD, PARAGRAPH, TRAIL, count_whole, tokenize
from tests.helpers.small_tokenizers import KINDS, Lines, Village, tokenizer

_ANCHOR = "Read on."


class FixedWidth:
    """Four characters a token: sentences start inside tokens."""

    name = "fixed"
    digest = "fixed"

    def encode(self, text: str) -> list[int]:
        return [int.from_bytes(text[i : i + 4].encode("ascii").rjust(4, b"\0"), "big") for i in range(0, len(text), 4)]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def encode_offsets(self, text: str) -> tuple[list[int], list[int]]:
        return self.encode(text), list(range(0, len(text), 4))

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(token.to_bytes(4, "big").lstrip(b"\0") for token in ids).decode("ascii")


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("words", "segments"), ("gpt2", "segments"), ("gemma", "segments"), ("llama2", "segments"), ("llama3", "offsets")],
)
def test_mode(kind: str, mode: str) -> None:
    assert tokenize(Village(), 0, tokenizer(kind), 100).mode == mode


@pytest.mark.parametrize("every_line", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_tokenising_the_whole(kind: str, every_line: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_BLOCK_CHARS", 700)
    monkeypatch.setattr(segments, "_BATCH_SEGMENTS", 50)
    tok = tokenizer(kind)
    made = tokenize(Village(every_line=every_line, limit=220), 0, tok, 2000)
    assert made.sentence_total == 220
    text = _ANCHOR + "".join(made.pieces)
    ids, starts = tok.encode_offsets(text)
    before = next(i for i, start in enumerate(starts) if start >= len(_ANCHOR))
    assert made.ids.tolist() == ids[before:]
    assert tok.decode(made.ids.tolist()) == text[starts[before] :]


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_can_be_cut_out(kind: str) -> None:
    tok = tokenizer(kind)
    made = tokenize(Village(), 0, tok, 2000)
    assert made.ids.dtype == np.int32
    assert made.offsets.dtype == np.int64
    assert len(made.offsets) == len(made.kinds) == made.sentence_total + 1
    assert made.pieces[0].startswith(PARAGRAPH)
    assert CLOSED not in made.kinds
    for i, piece in enumerate(made.pieces[:-1]):
        start = piece.lstrip() if made.kinds[i] == TRAIL else piece
        after = made.pieces[i + 1]
        end = after[: len(after) - len(after.lstrip())] if made.kinds[i + 1] == TRAIL else ""
        assert tok.decode(made.ids[made.offsets[i] : made.offsets[i + 1]].tolist()) == start + end


def test_fused_line_breaks_are_marked() -> None:
    made = tokenize(Village(), 0, tokenizer("llama3"), 2000)
    for piece, kind in zip(made.pieces, made.kinds[:-1], strict=True):
        assert kind == (TRAIL if piece.startswith(PARAGRAPH) else LEAD)


def test_a_boundary_inside_a_token_is_closed() -> None:
    tok = FixedWidth()
    lines = Lines(["Abcdefg.", " Second one.", " Third is here.", " Fourth and the last."])
    made = tokenize(lines, 0, tok, 4)
    # characters before each boundary, with the anchor: 8, 18, 30, 45; only multiples of four start a token
    assert made.kinds.tolist() == [LEAD, CLOSED, CLOSED, CLOSED, LEAD]
    assert tok.decode(made.ids.tolist()) == "".join(made.pieces)


def test_a_longer_need_only_adds() -> None:
    for kind in ("gpt2", "llama3"):
        short = tokenize(Village(), 0, tokenizer(kind), 500)
        long = tokenize(Village(), 0, tokenizer(kind), 60_000)
        assert short.token_total >= 500 + segments.SLACK_TOKENS
        assert long.token_total > 60_000
        assert long.ids[: short.token_total].tolist() == short.ids.tolist()
        sentences = short.reach(500)
        assert short.reach(500) == long.reach(500) < short.sentence_total
        assert long.kinds[: sentences + 1].tolist() == short.kinds[: sentences + 1].tolist()


def test_streams_differ() -> None:
    tok = tokenizer("words")
    assert tokenize(Village(), 0, tok, 100).pieces != tokenize(Village(), 1, tok, 100).pieces


def test_arrays_cannot_be_changed() -> None:
    made = tokenize(Village(), 0, tokenizer("words"), 100)
    with pytest.raises(ValueError, match="read-only"):
        made.ids[0] = 1


@pytest.mark.parametrize("block_chars", [300, 701, 2000])
def test_blocks_meet_where_tokens_span_sentences(block_chars: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_BLOCK_CHARS", block_chars)
    sources: list[tuple[str, Haystack]] = [
        ("bare", noise.Noise()),
        ("bare", Village(limit=300)),
        ("fixed", Lines(["A first one."] + [" Then more."] * 400)),
    ]
    for kind, source in sources:
        tok = FixedWidth() if kind == "fixed" else tokenizer(kind)
        made = tokenize(source, 0, tok, 100, may_end=True)
        text = _ANCHOR + "".join(made.pieces)
        seen = tok.decode(made.ids.tolist())
        # the first token may begin in what stands before the text, and the last one reach over its end
        assert len(seen) > 2 * block_chars
        assert text.find(seen[: len(text) - 200]) in range(len(_ANCHOR), len(_ANCHOR) + 20)


def test_source_too_short() -> None:
    for kind in ("gpt2", "llama3"):
        with pytest.raises(ConfigError) as caught:
            tokenize(Village(limit=10), 3, tokenizer(kind), 5000)
        message = str(caught.value)
        assert "stream 3" in message
        assert "5000 are needed" in message
        assert "repeat=true" in message
        assert 50 < int(message.split("ends after ")[1].split(" ", maxsplit=1)[0]) < 2000


def test_empty_source() -> None:
    with pytest.raises(ConfigError, match="is empty"):
        tokenize(Lines([]), 0, tokenizer("words"), 1)


@pytest.mark.parametrize(
    ("words", "count"),
    [("oslo", 2), ("osl", 0), ("12", 1), ("123", 0), ("12 miles", 1), ("", 0), ("is oslo", 0), ("b", 1), ("miles", 2)],
)
def test_count_whole(words: str, count: int) -> None:
    assert count_whole("oslo is 12 miles off; osloer, 1234 b12 a miles. oslo", words) == count + (words == "12")


def test_contains_ignores_case() -> None:
    made = tokenize(Lines(["The road to Oslo.", " It is 8471926 yards."]), 0, tokenizer("words"), 5)
    assert made.contains("OSLO")
    assert made.contains("8471926")
    assert made.contains("road to oslo")
    assert not made.contains("847192")
    assert not made.contains("Rome")


def test_collisions_count_only_what_a_length_can_use() -> None:
    made = tokenize(Village(), 0, tokenizer("words"), 30_000)
    near, far = made.pieces[5], made.pieces[-2]
    assert made.collides(1000)(near.strip())
    assert made.contains(far.strip())
    assert not made.collides(1000)(far.strip())
    assert made.collides(30_000)(made.pieces[made.reach(30_000) - 1].strip())
