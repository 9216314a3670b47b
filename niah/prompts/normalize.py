"""Reading an answer: which part of it counts, and which value in it is the first of the wanted shape."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from niah.types import Case

_UUID = re.compile(r"(?<![0-9a-z-])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-z-])")
_GROUP_MARKS = " ,.'_\u2019"


@dataclass(frozen=True, slots=True)
class Found:
    """A value as it stands in an answer.

    Attributes:
        value: in the form of the expected one: digits without separators, lower case, single spaces.
        is_settled: False while more text could still show that it is another value.
    """

    value: str
    is_settled: bool


def plain(text: str) -> str:
    """Unicode compatibility form (full-width digits, no-break spaces), lower case."""
    return unicodedata.normalize("NFKC", text).lower()


def judged_part(answer: str, case: Case) -> str:
    """The part of an answer that counts, in plain form.

    When the answer was begun for the model, that is the first line with something on it:
    what a base model makes up after it is another text. Else it is all.
    """
    text = plain(answer).lstrip()
    return text.split("\n", 1)[0] if case.answer_prefix else text


def first_value(answer: str, case: Case) -> Found | None:
    """The first value in the judged part that has the shape of the expected answer, or None.

    Numbers: as many digits as expected, together or in groups of three ("8,471,926"), not next to other digits.
    UUIDs: the usual five groups. Anything else: the first of the expected answers and the distractors.
    """
    text = judged_part(answer, case)
    return next(_values(text, case), None)


def is_settled(answer: str, case: Case) -> bool:
    """True when no text that may follow can change the judgement, so that decoding may stop."""
    found = first_value(answer, case)
    return _line_is_over(answer, case) or (found is not None and found.is_settled)


def value_shape(value: str) -> str:
    """A value's shape in words, for messages: ``7-digit number``, ``uuid`` or ``word``."""
    text = plain(value)
    if text.isascii() and text.isdigit():
        return f"{len(text)}-digit number"
    return "uuid" if _UUID.fullmatch(text) else "word"


def _line_is_over(answer: str, case: Case) -> bool:
    return bool(case.answer_prefix) and "\n" in plain(answer).lstrip()


def _values(text: str, case: Case) -> Iterator[Found]:
    shapes = {value_shape(value) for value in case.expected}
    if len(shapes) == 1 and shapes != {"word"} and shapes != {"uuid"}:
        digits = len(plain(case.expected[0]))
        for match in _number(digits).finditer(text):
            rest = text[match.end() :]
            grouped = len(match.group()) > digits
            # after a grouped number a separator may open one more group
            yield Found(re.sub(r"\D", "", match.group()), len(rest) > 1 or (bool(rest) and not grouped))
    elif shapes == {"uuid"}:
        yield from (Found(match.group(), match.end() < len(text)) for match in _UUID.finditer(text))
    else:
        # longest first, so that "sea otter" is not taken for "sea" where both are candidates
        known = {" ".join(plain(value).split()) for value in (*case.expected, *case.distractors)}
        words = "|".join(re.escape(value).replace(r"\ ", r"\s+") for value in sorted(known, key=len, reverse=True))
        for match in re.finditer(rf"(?<!\w)(?:{words})(?!\w)", text):
            yield Found(" ".join(match.group().split()), match.end() < len(text))


def _number(digits: int) -> re.Pattern[str]:
    grouped = ""
    if digits > 3:
        head, groups = (digits - 1) % 3 + 1, (digits - 1) // 3
        mark = f"[{_GROUP_MARKS}]"
        grouped = rf"|(?<!\d)(?<!\d{mark})\d{{{head}}}(?:{mark}\d{{3}}){{{groups}}}(?!{mark}?\d)"
    return re.compile(rf"(?<!\d)\d{{{digits}}}(?!\d){grouped}", re.ASCII)
