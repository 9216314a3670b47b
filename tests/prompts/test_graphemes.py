"""Clusters of characters against the ``regex`` module, which has Unicode's own tables."""

from __future__ import annotations

import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from niah.prompts.graphemes import joined
from niah.prompts.sentences import MAX_SEGMENT_CHARACTERS, split_sentences
from tests.helpers.odd_texts import NAMES, odd_text

_ODD = (
    *("a", "Z", "7", " ", "\n", "。", "é", "\u0301", "\u0323", "\u200d", "\u200c", "\u200b", "\ufe0f", "\u20e3"),
    *("👨", "👩", "🏽", "❤", "🇩", "🇪", "🇫", "\U000e0067", "ก", "ำ", "เ", "ิ", "ક", "્", "ष", "ि", "ក", "្", "မ", "်", "္"),
    *("\u1100", "\u1161", "\u11a8", "가", "각", "\u0600", "\u0d4e", "ﾞ", "が", "村"),
)


def _starts(text: str) -> set[int]:
    return {match.start() for match in regex.finditer(r"\X", text)}


@settings(max_examples=400, deadline=None)
@given(text=st.lists(st.sampled_from(_ODD), min_size=2, max_size=24).map("".join))
def test_what_may_be_parted_is_a_border_of_clusters(text: str) -> None:
    starts = _starts(text)
    for at in range(1, len(text)):
        if not joined(text[:at], text[at:], starts_here=True):
            assert at in starts, (text[:at], text[at:])


def test_texts_are_not_joined_more_than_they_are() -> None:
    for name in NAMES:
        text = odd_text(name)[:3000]
        starts = _starts(text)
        free = {at for at in range(1, len(text)) if not joined(text[max(0, at - 90) : at], text[at : at + 1])}
        assert free <= starts, name
        # on the safe side, but not so far that no place is left; flags must be counted from the first
        assert len(free) >= (0.0 if name in ("flags",) else 0.6) * (len(starts) - 1), name
    assert not joined("🇩🇪", "🇫", starts_here=True)
    assert joined("🇩🇪🇫", "🇷", starts_here=True)
    assert joined("🇩🇪", "🇫")


def test_a_stretch_without_white_space_is_not_cut_inside_a_cluster() -> None:
    for name in ("emoji", "accents", "hangul letters", "thai without blanks"):
        text = odd_text(name)
        pieces = split_sentences(text)
        assert "".join(pieces) == text
        assert max(map(len, pieces)) <= MAX_SEGMENT_CHARACTERS
        starts, at = _starts(text), 0
        for piece in pieces:
            assert at in starts
            at += len(piece)
