"""A haystack stream tokenized once: one array of token ids with sentence offsets, cut anywhere afterwards for free."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from niah.errors import ConfigError
from niah.prompts.haystack import Haystack
from niah.prompts.tokens import Tokenizer

Ids: TypeAlias = NDArray[np.int32]
Mode = Literal["segments", "offsets"]

# How a needle may go between two sentences. LEAD: before the white space that the next sentence starts with.
# TRAIL: the tokenizer fused that white space with the end of the sentence before (".\n\n" is one token), so the
# needle goes after it and brings the same white space along at its own end. CLOSED: not here.
CLOSED, LEAD, TRAIL = 0, 1, 2

PARAGRAPH = "\n\n"
# a text is coarse if a stretch without a place for a needle is longer than COARSE_TOKENS, or if stretches longer than
# LONG_TOKENS hold this share of it; and never where the longest is within so small a share of the prompt
COARSE_TOKENS, LONG_TOKENS, LONG_SHARE = 256, 128, 0.1
# or if a piece has so many characters, however few tokens they are: nobody writes such sentences, so it was cut
COARSE_CHARACTERS = 1_500
_FINE_SHARE = 0.015
# tokens kept beyond those asked for: the builder looks for sentences of a wanted length there
SLACK_TOKENS = 8192
_SAMPLE_SEGMENTS = 200
_BATCH_SEGMENTS = 1024
_BLOCK_CHARS = 50_000
_SAMPLE_NEEDLE = "The special magic number for Oslo is 7412839."
# stands before the very first sentence while tokenising, as the end of the instruction will
_ANCHOR = "Read on."


@dataclass(frozen=True, slots=True, eq=False)
class Segmented:
    """One stream of a haystack as tokens.

    Attributes:
        ids: int32, shape (tokens,).
        offsets: int64, shape (sentences + 1,): sentence i is ``ids[offsets[i]:offsets[i + 1]]``.
        kinds: int8, shape (sentences + 1,): LEAD, TRAIL or CLOSED for the boundary before sentence i, the last for
            the end. The boundary before sentence 0 stands for a paragraph break after the instruction.
        pieces: the sentences' text with their leading white space; that of sentence 0 is a blank line.
        mode: ``segments`` (sentences tokenised alone, which equals the whole) or ``offsets`` (whole blocks).
    """

    ids: Ids
    offsets: NDArray[np.int64]
    kinds: NDArray[np.int8]
    pieces: tuple[str, ...]
    mode: Mode
    haystack_digest: str
    stream: int
    _lowered: str
    _lowered_ends: NDArray[np.int64]

    @property
    def token_total(self) -> int:
        return len(self.ids)

    @property
    def sentence_total(self) -> int:
        return len(self.pieces)

    def contains(self, text: str) -> bool:
        """Whether the text stands in the haystack as whole words, in any case."""
        return bool(count_whole(self._lowered, text.lower(), stop_at=1))

    def collides(self, haystack_tokens: int) -> Callable[[str], bool]:
        """``contains`` for the part that prompts of up to that many haystack tokens can use, and for no more.

        Needles drawn with it depend on their own length alone, not on what longer prompts a run also has.
        """
        sentences = self.reach(haystack_tokens)
        end = int(self._lowered_ends[sentences - 1]) if sentences else 0
        return lambda text: bool(count_whole(self._lowered, text.lower(), stop_at=1, end=end))

    def is_coarse(self, prompt_tokens: int) -> bool:
        """Whether sentences are too long for needles in prompts of that length, which then may go inside them.

        Depends on the text that such prompts can use and on no more, as ``collides`` does.
        """
        sentences = self.reach(prompt_tokens)
        if sentences < 1:
            return True
        ends = self.offsets[: sentences + 1]
        is_open = self.kinds[: sentences + 1] != CLOSED
        is_open[[0, -1]] = True
        stretches = np.diff(ends[is_open])
        longest = int(stretches.max())
        if longest <= _FINE_SHARE * prompt_tokens:
            return False
        if longest > COARSE_TOKENS or max(map(len, self.pieces[:sentences])) >= COARSE_CHARACTERS:
            return True
        return int(stretches[stretches > LONG_TOKENS].sum()) > LONG_SHARE * int(ends[-1])

    def reach(self, haystack_tokens: int) -> int:
        """Number of sentences that end before so many tokens and the slack after them."""
        # "left" leaves out a last sentence that ends just there: what follows it has not been looked at
        return int(np.searchsorted(self.offsets, haystack_tokens + SLACK_TOKENS, side="left")) - 1


def count_whole(text: str, words: str, *, stop_at: int | None = None, end: int | None = None) -> int:
    """How often ``words`` stands in ``text[:end]`` with no further letter or digit of the same word at either side."""
    limit = len(text) if end is None else end
    found = 0
    at = text.find(words, 0, limit) if words else -1
    while at >= 0:
        after = at + len(words)
        if not (_joins(text[at - 1 : at], words[0]) or _joins(words[-1], text[after : after + 1])):
            found += 1
            if found == stop_at:
                break
        at = text.find(words, at + 1, limit)
    return found


def _joins(left: str, right: str) -> bool:
    return (left.isdigit() and right.isdigit()) or (left.isalpha() and right.isalpha())


def tokenize(
    haystack: Haystack, stream: int, tokenizer: Tokenizer, need_tokens: int, *, may_end: bool = False
) -> Segmented:
    """Read a stream until it has ``need_tokens`` and the builder's slack, and tokenize every sentence once.

    The start of the result depends on haystack, stream and tokenizer alone: a larger ``need_tokens`` only makes it
    longer, so a prompt comes out the same whatever else is in the run.

    Args:
        may_end: accept a source that ends earlier; the builder then says which lengths it is too short for.

    Raises:
        ConfigError: the source ends before ``need_tokens``, or has no sentence at all.
    """
    source = haystack.segments(stream)
    sample = list(islice(source, _SAMPLE_SEGMENTS))
    if not sample:
        raise ConfigError(f"the haystack's stream {stream} is empty; give it some text.")
    segments = chain([PARAGRAPH + sample[0]], sample[1:], source)
    mode: Mode = "segments" if _splits_at_segments(sample, tokenizer) else "offsets"
    gather = _Gathered(need_tokens + SLACK_TOKENS)
    if mode == "segments":
        _gather_segments(gather, segments, tokenizer)
    else:
        _gather_blocks(gather, segments, tokenizer)
    if len(gather.ids) < need_tokens and not may_end:
        raise ConfigError(
            f"the haystack's stream {stream} ends after {len(gather.ids)} tokens, but {need_tokens} are needed: "
            "ask for shorter lengths, give more text, or let it repeat where the source has repeat=true."
        )
    return gather.finish(haystack, stream, mode)


def _splits_at_segments(sample: Sequence[str], tokenizer: Tokenizer) -> bool:
    """Whether tokenising each segment alone gives the same ids as tokenising the joined text."""
    middle = len(sample) // 2
    texts = [
        list(sample),
        [*sample[:middle], " " + _SAMPLE_NEEDLE, *sample[middle:]],
        # a paragraph break where the sample may have none: some tokenizers fuse full stop and line breaks
        [sample[0], PARAGRAPH + _SAMPLE_NEEDLE, PARAGRAPH + sample[-1].lstrip()],
    ]
    for pieces in texts:
        whole = tokenizer.encode_batch(["".join(pieces)])[0]
        if whole != list(chain.from_iterable(tokenizer.encode_batch(pieces))):
            return False
    return True


class _Gathered:
    """Collects sentences until there are enough tokens."""

    def __init__(self, wanted_tokens: int) -> None:
        self.wanted = wanted_tokens
        self.ids: array[int] = array("i")
        self.ends: array[int] = array("q", [0])
        self.kinds: array[int] = array("b")
        self.pieces: list[str] = []

    @property
    def enough(self) -> bool:
        return len(self.ids) >= self.wanted

    def add(self, piece: str, ids: Sequence[int], kind: int) -> None:
        self.ids.extend(ids)
        self.ends.append(len(self.ids))
        self.kinds.append(kind)
        self.pieces.append(piece)

    def finish(self, haystack: Haystack, stream: int, mode: Mode) -> Segmented:
        lowered = [piece.lower() for piece in self.pieces]
        # the boundary after the last sentence counts as open: a prompt that ends there ends the text there
        kinds = np.array([*self.kinds, LEAD], dtype=np.int8)
        return Segmented(
            ids=_frozen(np.frombuffer(self.ids, dtype=np.int32)),
            offsets=_frozen(np.frombuffer(self.ends, dtype=np.int64)),
            kinds=_frozen(kinds),
            pieces=tuple(self.pieces),
            mode=mode,
            haystack_digest=haystack.digest,
            stream=stream,
            _lowered="".join(lowered),
            _lowered_ends=np.cumsum([len(piece) for piece in lowered], dtype=np.int64),
        )


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    values.flags.writeable = False
    return values


def _gather_segments(gather: _Gathered, segments: Iterator[str], tokenizer: Tokenizer) -> None:
    while not gather.enough:
        batch = list(islice(segments, _BATCH_SEGMENTS))
        if not batch:
            return
        for piece, ids in zip(batch, tokenizer.encode_batch(batch), strict=True):
            gather.add(piece, ids, LEAD)


def _gather_blocks(gather: _Gathered, segments: Iterator[str], tokenizer: Tokenizer) -> None:
    """Tokenise blocks of about 50 kB, each with its neighbouring sentences so that its edges come out as inside."""
    before, held = _ANCHOR, None
    upcoming = next(segments, None)
    while upcoming is not None and not gather.enough:
        block, chars = [upcoming], len(upcoming)
        for piece in segments:
            upcoming = piece
            if chars >= _BLOCK_CHARS:
                break
            block.append(piece)
            chars += len(piece)
        else:
            upcoming = None
        held = _add_block(gather, before, block, upcoming or "", tokenizer, held)
        before = block[-1]


def _add_block(
    gather: _Gathered, before: str, block: Sequence[str], after: str, tokenizer: Tokenizer, held: int | None
) -> int:
    """Add a block's sentences.

    Args:
        held: characters of this block that the last token of the block before holds; None for the first block.

    Returns:
        That number for the next block.
    """
    text = "".join(block)
    ids, token_starts = tokenizer.encode_offsets(before + text + after)
    starts, begin = np.array(token_starts, dtype=np.int64), len(before)
    if held is not None and begin + held not in starts:
        # in tokens that span whole sentences the two blocks do not meet: this one goes on where the other stopped
        ids, token_starts = tokenizer.encode_offsets((text + after)[held:])
        starts, begin = np.array(token_starts, dtype=np.int64) + held, 0
    text_starts = np.cumsum([begin, *(len(piece) for piece in block)])
    # a token that reaches over a sentence's start began in the sentence before and stays there
    firsts = np.searchsorted(starts, text_starts, side="left")
    if held is not None:
        firsts[0] = np.searchsorted(starts, begin + held, side="left")
        firsts = np.maximum.accumulate(firsts)
    for i, piece in enumerate(block):
        first, last = int(firsts[i]), int(firsts[i + 1])
        next_start = int(starts[first]) if first < len(starts) else -1
        gather.add(piece, ids[first:last], _kind(piece, next_start - int(text_starts[i])))
    end = int(firsts[-1])
    return int(starts[end]) - int(text_starts[-1]) if end < len(starts) else len(after)


def _kind(piece: str, fused_chars: int) -> int:
    """Which needle the boundary before a sentence takes, from how many of its characters the token before holds."""
    space_chars = len(piece) - len(piece.lstrip())
    if fused_chars == 0:
        return LEAD
    return TRAIL if fused_chars == space_chars else CLOSED
