"""Where a needle may go inside a sentence: between two tokens whose characters part there, best between two words.

Text is not always sentences: letters without a blank, Thai, base64, a table without full stops. There the sentence
boundary nearest to a depth may be hundreds of tokens away, or a tokenizer may join every full stop with what follows.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from niah.prompts.graphemes import is_flag_letter, joined
from niah.prompts.segments import Ids
from niah.prompts.tokens import Tokenizer

# of a haystack's tokens: so far from its depth a needle may lie for a sentence's or a word's sake
NEAR_SHARE = 0.01
# in short haystacks a word may cost more, up to so many tokens and this share
_WORD_TOKENS, _WORD_SHARE = 12, 0.04
# a word that long is no word: behind so many tokens any character will do
_MOST_WORD_TOKENS = 64
# where a text has to stop: tokens that are given up at most, and for a whole word at its end
_CUT_TOKENS, _CUT_WORD_TOKENS = 32, 8
# tokens at either side of a place that are decoded to see what parts there
_AROUND_TOKENS = 24
# a character is at most four bytes, so at most so many tokens
_CHARACTER_TOKENS = 4
_TORN = "\ufffd"
# flags are pairs of letters that all look alike: so far back their first one is looked for
_FLAG_TOKENS = 4096

# how good a place is: white space at either side, a mark of punctuation before it, or nothing but two characters
_BLANK, _MARK, _CHARACTER = 0, 1, 2
# written between words by scripts that show no space there
_ZERO_WIDTH_SPACE = "\u200b"
# marks that stand inside words, names and numbers
_INNER_MARKS = frozenset("'’-_‐‑.@/\\")
_NUMBER_MARKS = frozenset(",.:")


@dataclass(frozen=True, slots=True)
class Place:
    """A place inside the haystack: before token ``at``, with the character at either side of it."""

    at: int
    left: str
    right: str
    kind: int

    @property
    def spacing(self) -> tuple[str, str]:
        """White space that a needle brings along: one space where the text has none of its own."""
        return ("" if self.left.isspace() else " "), ("" if self.right.isspace() else " ")


def word_tokens(haystack_tokens: int) -> float:
    """How many tokens a needle may be moved so that no word is torn."""
    short = min(_WORD_TOKENS, _WORD_SHARE * haystack_tokens)
    return min(max(NEAR_SHARE * haystack_tokens, short), _MOST_WORD_TOKENS)


def nearest_place(tokenizer: Tokenizer, ids: Ids, target: float, limit: float) -> Place | None:
    """The place nearest to ``target`` (in tokens), the earlier of two; None where there is none within ``limit``.

    Within ``word_tokens`` of the target a place at white space comes before one behind a mark of punctuation, and that
    before one between two characters; farther away any place will do. None is inside a token, a character or a
    grapheme cluster.
    """
    words = min(word_tokens(len(ids)), limit)
    best: Place | None = None
    for at in _outwards(target, len(ids)):
        away = abs(at - target)
        if away > (limit if best is None else words):
            break
        found = place(tokenizer, ids, at)
        if found is None:
            continue
        if found.kind == _BLANK and away <= words:
            return found
        if best is None or found.kind < best.kind:
            best = found
    return best


def last_place(tokenizer: Tokenizer, ids: Ids, first: int, end: int) -> int | None:
    """The last place after token ``first`` and not after ``end``, for a text that has to stop there.

    Before white space if there is some a few tokens back; None where nothing parts within some more.
    """
    best = None
    for back in range(min(end - first, _CUT_TOKENS)):
        if best is not None and back > _CUT_WORD_TOKENS:
            break
        found = place(tokenizer, ids, end - back)
        if found is not None and found.right.isspace():
            return end - back
        if found is not None and best is None:
            best = end - back
    return best


def place(tokenizer: Tokenizer, ids: Ids, at: int) -> Place | None:
    """What parts before token ``at``; None where that would tear a character or a cluster of them."""
    first, left = _aligned(tokenizer, ids, at, -1)
    end, right = _aligned(tokenizer, ids, at, 1)
    if not left or not right or _TORN in (left[-1], right[0]):
        return None
    if tokenizer.decode(ids[first:end].tolist()) != left + right:
        return None
    if is_flag_letter(right[0]) and all(map(is_flag_letter, left)):
        left = tokenizer.decode(ids[max(0, at - _FLAG_TOKENS) : at].tolist())
    if joined(left, right, starts_here=at <= _FLAG_TOKENS):
        return None
    return Place(at, left[-1], right[0], _kind(left, right[0]))


def _aligned(tokenizer: Tokenizer, ids: Ids, at: int, direction: int) -> tuple[int, str]:
    """The text of some tokens before (-1) or after (1) a place, and where they begin or end.

    The far end must not tear a character: some tokenizers then say of all bytes beside it that they are torn.
    """
    edge, text = at, ""
    for tokens in range(_AROUND_TOKENS, _AROUND_TOKENS - _CHARACTER_TOKENS, -1):
        edge = min(max(at + direction * tokens, 0), len(ids))
        text = tokenizer.decode(ids[min(at, edge) : max(at, edge)].tolist())
        if edge in (0, len(ids)) or not (text.startswith(_TORN) if direction < 0 else text.endswith(_TORN)):
            break
    return edge, text


def _kind(before: str, right: str) -> int:
    left = before[-1]
    if left.isspace() or right.isspace() or _ZERO_WIDTH_SPACE in (left, right):
        return _BLANK
    # behind a comma and not before it, and not where the mark stands inside a number: "1,000"
    ends = unicodedata.category(left) in ("Po", "Pe", "Pf", "Pd", "Sm") and left not in _INNER_MARKS
    in_number = left in _NUMBER_MARKS and right.isdigit() and before[-2:-1].isdigit()
    return _MARK if ends and right.isalnum() and not in_number else _CHARACTER


def _outwards(target: float, tokens: int) -> Iterator[int]:
    """Inner places from the one nearest to the target on, the earlier of two first."""
    low = min(math.floor(target), tokens - 1)
    high = max(low + 1, 1)
    while low >= 1 or high < tokens:
        if high >= tokens or (low >= 1 and target - low <= high - target):
            yield low
            low -= 1
        else:
            yield high
            high += 1
