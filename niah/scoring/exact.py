"""Exact match of the first value: right or wrong, nothing between."""

from __future__ import annotations

from niah.prompts.normalize import first_value, judged_part, plain, value_shape
from niah.prompts.scorer import ScorerPlugin
from niah.types import Case, Score

NAME = "exact"
VERSION = 2
_QUOTED_CHARS = 60


def score(answer: str, case: Case) -> Score:
    """1 when the first value of the right shape in the answer is an expected one, else 0 with the reason.

    A reply that repeats the prompt is wrong whatever stands in it.
    """
    if _is_echo(answer, case):
        return _score("the reply repeats the prompt's instruction: an echo is no retrieval")
    found = first_value(answer, case)
    if found is None:
        return _score(_why_none(answer, case))
    if found.value in {" ".join(plain(value).split()) for value in case.expected}:
        return _score(f"answered {found.value}, as expected", correct=True)
    owners = [needle.key for needle in case.needles if plain(needle.value) == found.value]
    whose = f"the value of {owners[0]}" if owners else "which is in no needle"
    return _score(f"answered {found.value}, {whose}; expected {case.expected[0]}")


def _is_echo(answer: str, case: Case) -> bool:
    """A server that gives the whole prompt back has the asked value in its reply, at one depth even as the first."""
    instruction = " ".join(plain(case.instruction).split())
    return bool(instruction) and instruction in " ".join(plain(answer).split())


def _score(why: str, *, correct: bool = False) -> Score:
    return Score(float(correct), correct, why, NAME, VERSION)


def _why_none(answer: str, case: Case) -> str:
    expected = case.expected[0]
    part = judged_part(answer, case).rstrip()
    if not part:
        return f"the answer is empty; expected {expected}"
    shape = value_shape(expected)
    quoted = part if len(part) <= _QUOTED_CHARS else part[:_QUOTED_CHARS] + "…"
    if shape == "word":
        return f"neither {expected!r} nor another needle's value is in the answer {quoted!r}"
    return f"no {shape} in the answer {quoted!r}; expected {expected}"


PLUGIN = ScorerPlugin(NAME, "first value of the right shape equals the expected one", VERSION, score)
