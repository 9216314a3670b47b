"""Grapheme clusters: characters that a reader sees as one and that no cut may part (Unicode's UAX #29, extended)."""

from __future__ import annotations

import unicodedata

# written with the character before them, though no combining marks by their category
_EXTENDING = frozenset("\u200c\u200d\u0e33\u0eb3\uff9e\uff9f")
# written with the character after them
_PREPENDED = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd\U000111c2\U000111c3"
)
_ZERO_WIDTH_JOINER = "\u200d"
_VIRAMA = 9
# of the same combining class, but they only take a vowel away and join nothing
_KILLERS = frozenset("\u0e3a\u0f84\u103a")
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
# Hangul written as separate letters: leading consonants, vowels, trailing consonants; and whole syllables
_LEADS = (range(0x1100, 0x1160), range(0xA960, 0xA97D))
_VOWELS = (range(0x1160, 0x11A8), range(0xD7B0, 0xD7C7))
_TRAILS = (range(0x11A8, 0x1200), range(0xD7CB, 0xD7FC))
_SYLLABLES = range(0xAC00, 0xD7A4)
_SYLLABLES_A_VOWEL = 28


def joined(left: str, right: str, *, starts_here: bool = False) -> bool:
    """Whether the last character of ``left`` and the first of ``right`` belong together.

    On the safe side where the rule needs tables that Python lacks: every mark stays with what is before it, what
    follows a virama stays with it, and so does whatever stands beside a zero-width joiner.

    Args:
        starts_here: the text begins where ``left`` does, and is not only cut there.
    """
    a, b = left[-1], right[0]
    if _extends(b):
        return not (a.isspace() and a in "\r\n")
    if a == _ZERO_WIDTH_JOINER or (a in _PREPENDED and unicodedata.category(b) != "Cc") or (a, b) == ("\r", "\n"):
        return True
    if b.isalpha() and _after_virama(left):
        return True
    if is_flag_letter(a) and is_flag_letter(b):
        return _in_flag(left, starts_here=starts_here)
    return _in_syllable(ord(a), ord(b))


def _extends(char: str) -> bool:
    return (
        unicodedata.category(char).startswith("M")
        or char in _EXTENDING
        or ord(char) in _SKIN_TONES
        or ord(char) in _TAGS
    )


def _after_virama(left: str) -> bool:
    """Whether the last letter has a virama among the marks that it carries."""
    for char in reversed(left):
        if unicodedata.combining(char) == _VIRAMA and char not in _KILLERS:
            return True
        if not _extends(char):
            return False
    return False


def is_flag_letter(char: str) -> bool:
    """Whether two such characters make a flag."""
    return ord(char) in _FLAG_LETTERS


def _in_flag(left: str, *, starts_here: bool) -> bool:
    """Whether the last of the flag letters waits for its second half: they go in pairs from the first one on."""
    for run, char in enumerate(reversed(left)):
        if not is_flag_letter(char):
            return run % 2 == 1
    # otherwise it is out of sight where the pairs begin
    return len(left) % 2 == 1 if starts_here else True


def _in_syllable(a: int, b: int) -> bool:
    is_open = a in _SYLLABLES and (a - _SYLLABLES.start) % _SYLLABLES_A_VOWEL == 0
    if _in(a, _LEADS):
        return _in(b, (*_LEADS, *_VOWELS, _SYLLABLES))
    if _in(a, _VOWELS) or is_open:
        return _in(b, (*_VOWELS, *_TRAILS))
    return (_in(a, _TRAILS) or a in _SYLLABLES) and _in(b, _TRAILS)


def _in(code: int, ranges: tuple[range, ...]) -> bool:
    return any(code in part for part in ranges)
