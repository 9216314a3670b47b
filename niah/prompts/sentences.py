"""Sentence boundaries in text of many languages, by punctuation and rules alone; nothing of the text is lost."""

from __future__ import annotations

import re

from niah.prompts.graphemes import joined

# raise it when the same text is cut elsewhere: sources with a seeded start put it into their digest
VERSION = 1
MAX_SEGMENT_CHARACTERS = 2_000

_CLOSERS = "\"'”’»)\\]）」』】》〉"
# Full-width enders end a sentence wherever they stand; the others only before white space, a CJK character or the end.
_BOUNDARY = re.compile(
    rf"""
    (?P<blank>\n[^\S\n]*\n\s*)                                   # a blank line always ends
    | (?P<wide>[。！？｡]+[{_CLOSERS}]*)
    | (?P<narrow>[.!?…؟۔।॥]+[{_CLOSERS}]*)(?=\s|$|[\u3040-\u30ff\u3400-\u9fff])
    """,
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"[^\s(\[{\"'“‘«„]*$")
_NEXT_WORD = re.compile(r"\s*([^\W\d_]+)")
# "「行こう！」と言った": the particle carries the sentence on after the quotation
_QUOTING_PARTICLES = ("と", "って")
# characters looked back for a word or the start of a line: keeps the work linear in texts without line breaks
_WORD_WINDOW = 32
# characters before a cut that tell whether it parts a cluster of characters
_CLUSTER_WINDOW = 64


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# never at the end of a sentence: a name follows
_LEADING = _words(
    """mr mrs ms mx dr prof st mt rev fr gen col maj capt lt sgt hon gov sen rep pres mme mlle messrs vs cf ca approx
    ed eds e.g i.e viz hr hrn dipl-ing z.b d.h u.a o.ä s.o s.u bzw vgl evtl ggf sr sra srta dra dña ud uds p.ej
    т.е т.к т.н г-н г-жа им ул пр-т см проф акад д-р напр"""
)
# words of their own as well: abbreviations only before a figure, as in "No. 5" and "S. 12"
_BEFORE_FIGURES = _words("""no nos nr fig figs eq sec ch vol p pp art abs kap bd s cap núm pág págs стр рис гл ст""")
# may end a sentence: they do when a capital follows
_TRAILING = _words(
    """al jr sr etc inc ltd co corp bros est dept univ ave blvd rd a.m p.m u.s u.k e.u jan feb mar apr jun jul aug sep
    sept oct nov dec usw u.s.w str jh ee.uu т.д т.п др пр г гг в вв руб коп тыс млн млрд"""
)
_MONTHS = frozenset(
    {"januar", "jänner", "februar", "märz", "april", "mai", "juni", "juli"}
    | {"august", "september", "oktober", "november", "dezember"}
)
_INITIAL = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_ENUMERATION = re.compile(r"\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,4})")


def split_sentences(text: str) -> list[str]:
    """Cut a text into sentences, each with the white space before it; ``"".join`` of them is the text again.

    Enders are ``. ! ? … 。 ！ ？ ؟ ۔ ।`` with the quotes and brackets that close after them. Abbreviations, initials,
    decimals and ordinals do not end a sentence, a blank line always does. A stretch of more than
    ``MAX_SEGMENT_CHARACTERS`` without an ender is cut at white space, or anywhere when it has none.
    """
    segments: list[str] = []
    start = 0
    for end in _ends(text):
        # what lies between two boundaries may be white space alone: it goes with what follows
        if end > start and not text[start:end].isspace():
            segments.extend(_bounded(text[start:end]))
            start = end
    rest = text[start:]
    if rest.isspace() and segments:
        segments[-1] += rest
    elif rest:
        segments.extend(_bounded(rest))
    return segments


def _ends(text: str) -> list[int]:
    ends = []
    for match in _BOUNDARY.finditer(text):
        if match["blank"]:
            ends.append(match.start())
        elif match["wide"]:
            if not (match["wide"][-1] in _CLOSERS and text.startswith(_QUOTING_PARTICLES, match.end())):
                ends.append(match.end())
        elif _ends_sentence(text, match):
            ends.append(match.end())
    return ends


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    following = _first_character(text, match.end())
    if following.islower():
        # "Really?" he asked; the rain ... fell; 3. oktober
        return False
    mark = match["narrow"]
    if mark.rstrip(_CLOSERS.replace("\\", "")) != ".":
        return True
    word = _word_before(text, match.start())
    return not (_is_abbreviation(word, following) or _is_mark_of_order(word, text, match))


def _is_abbreviation(word: str, following: str) -> bool:
    """Whether the full stop after this word belongs to the word."""
    lowered = word.lower()
    if lowered in _LEADING:
        return True
    if lowered in _BEFORE_FIGURES and following.isdigit():
        return True
    return lowered in _TRAILING and bool(following) and not following.isupper()


def _is_mark_of_order(word: str, text: str, match: re.Match[str]) -> bool:
    """Whether the full stop belongs to an initial, a German ordinal or the "1." of a list."""
    window = max(0, match.start() - _WORD_WINDOW)
    line_start = text.rfind("\n", window, match.start()) + 1 or window
    opens_line = line_start == 0 or text[line_start - 1] == "\n"
    if opens_line and _ENUMERATION.fullmatch(text[line_start : match.start()].strip()):
        return True
    if word.isdigit() and len(word) <= 2:
        return _word_after(text, match.end()).lower() in _MONTHS
    if not _INITIAL.fullmatch(word) or not word[0].isupper():
        return False
    # "So did I." ends, "J. R. Hartley" and "by I. Newton" do not: a capital I after a small word is the pronoun
    before = _word_before(text, match.start() - len(word) - 1)
    return not (word == "I" and before[:1].islower() and before.lower() not in {"by", "and", "of", "to", "von", "de"})


def _first_character(text: str, position: int) -> str:
    while position < len(text) and (text[position].isspace() or text[position] in "\"'“‘«„(["):
        position += 1
    return text[position : position + 1]


def _word_before(text: str, position: int) -> str:
    found = _LAST_WORD.search(text, max(0, position - _WORD_WINDOW), max(0, position))
    return found[0] if found else ""


def _word_after(text: str, position: int) -> str:
    found = _NEXT_WORD.match(text, position)
    return found[1] if found else ""


def _bounded(segment: str) -> list[str]:
    """The segment in pieces of at most ``MAX_SEGMENT_CHARACTERS``; white space stays at the start of a piece."""
    pieces = []
    start = 0
    while len(segment) - start > MAX_SEGMENT_CHARACTERS:
        cut = _cut(segment, start)
        pieces.append(segment[start:cut])
        start = cut
    pieces.append(segment[start:])
    return pieces


def _cut(segment: str, start: int) -> int:
    """Where the piece that begins at ``start`` ends: at its last white space inside, else as far as allowed."""
    limit = start + MAX_SEGMENT_CHARACTERS
    for position in range(limit, start, -1):
        if segment[position].isspace() and not segment[position - 1].isspace():
            return position
    # a letter keeps the accents and vowel signs that are written after it, and a picture the rest of its sequence
    cut = limit
    while cut > start + 1 and joined(segment[max(start, cut - _CLUSTER_WINDOW) : cut], segment[cut]):
        cut -= 1
    return cut if cut > start + 1 else limit
