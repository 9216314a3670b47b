"""The interval of one setting's own share, where questions of one text stand or fall together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

from niah.stats.intervals import Interval, score_ends, wilson
from niah.stats.power import MIN_CONTEXTS
from niah.store.schema import Row

# what is taken for granted while the texts say little: questions of one text are correlated by this much, with the
# weight of four texts. By simulation the smallest pair that covers 94 % at 0.3 for shares from 2 to 98 %
LEANING = 0.2
_LEANING_FREEDOM = 4.0
# degrees of freedom from which on texts are compared within their lengths
_LEAST_FREEDOM = 3


@dataclass(frozen=True, slots=True)
class Context:
    """One text (length in tokens, trial): ``hits`` of its ``answered`` questions are right."""

    length: int
    hits: int
    answered: int


Texts: TypeAlias = list[Context]


@dataclass(frozen=True, slots=True)
class _Spread:
    """How far texts differ: variance of the share over that of independent questions, known from ``freedom`` degrees
    by the texts themselves, of which ``worth`` remain where a few texts make up all of it."""

    factor: float
    freedom: float
    worth: float


def contexts_of(rows: Iterable[Row]) -> list[Context]:
    """The texts of answered rows, each once."""
    counts: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        if row.outcome == "answered":
            pair = counts.setdefault((row.length, row.trial), [0, 0])
            pair[0] += row.correct is True
            pair[1] += 1
    return [Context(length, hits, answered) for (length, _), (hits, answered) in counts.items()]


def clustered_interval(contexts: Sequence[Context], confidence: float = 0.95) -> Interval:
    """Interval of the share right over all questions, robust to questions of one text failing together.

    It is Wilson's with as many questions as these are worth: n over the design effect, and over (t / z)² because the
    effect is itself an estimate (Korn and Graubard, Survey Methodology 24, 1998). The effect comes from how far texts
    differ (within lengths, where each has enough texts) and leans towards that of a correlation of ``LEANING``, the
    more so the fewer texts fail, as a moderated variance does (Smyth, Stat Appl Genet Mol Biol 3, 2004). From
    ``MIN_CONTEXTS`` texts on the plain estimate is a floor: the wider one counts. With one question a text it is
    Wilson's own.

    Raises:
        ValueError: counts or confidence are impossible.
    """
    hits, questions = sum(c.hits for c in contexts), sum(c.answered for c in contexts)
    plain = wilson(hits, questions, confidence)
    kept = [context for context in contexts if context.answered]
    if questions == len(kept):
        return plain
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    # that lengths differ is no doubt, and what counts it in is too wide; with few texts it may still be the better one
    size = max(_worth(strata, hits / questions, questions, confidence, z) for strata in _groupings(kept))
    return score_ends(hits / questions, size, z)


def is_assumed(contexts: int, answered: int) -> bool:
    """Whether an interval rests on an assumed correlation more than on texts: too few to see how far they differ."""
    return contexts < MIN_CONTEXTS and answered > contexts


def _worth(strata: Sequence[Texts], share: float, questions: int, confidence: float, z: float) -> float:
    """How many independent questions these are worth."""
    from scipy.special import stdtrit

    quantile = (1 + confidence) / 2
    contexts = [context for members in strata for context in members]
    mean_size = sum(c.answered**2 for c in contexts) / questions
    leaning = 1 + (mean_size - 1) * LEANING
    spread = _spread(strata, share, questions)
    weight = _LEANING_FREEDOM + spread.worth
    factor = max(1.0, (_LEANING_FREEDOM * leaning + spread.worth * spread.factor) / weight)
    sizes = [questions / factor * (z / float(stdtrit(weight, quantile))) ** 2]
    if len(contexts) >= MIN_CONTEXTS and spread.worth:
        sizes.append(questions / max(1.0, spread.factor) * (z / float(stdtrit(spread.freedom, quantile))) ** 2)
    return min(sizes)


def _spread(strata: Sequence[Texts], share: float, questions: int) -> _Spread:
    """The linearised variance of a share over contexts (Cochran, Sampling Techniques, 6.4), within strata."""
    count = sum(len(members) for members in strata)
    if count < 2 or share in (0.0, 1.0):
        return _Spread(1.0, 0.0, 0.0)
    residuals, total = [], 0.0
    for members in strata:
        raw = [c.hits - share * c.answered for c in members]
        own = [value - math.fsum(raw) / len(raw) for value in raw]
        total += len(own) / (len(own) - 1) * math.fsum(value**2 for value in own)
        residuals += own
    freedom = float(count - len(strata))
    squares, fourths = math.fsum(r**2 for r in residuals), math.fsum(r**4 for r in residuals)
    if squares <= 1e-12:
        return _Spread(0.0, freedom, freedom)
    # the heavier the tails, the fewer texts the estimate really rests on
    tails = max(count * fourths / squares**2 - 1, 1e-9)
    return _Spread(total / (questions * share * (1 - share)), freedom, min(freedom, 2 * count / tails))


def _groupings(contexts: Sequence[Context]) -> list[list[Texts]]:
    """Texts by length, since lengths are chosen and not drawn; all together where that leaves too few to compare."""
    found: dict[int, Texts] = {}
    for context in contexts:
        found.setdefault(context.length, []).append(context)
    together, apart = [list(contexts)], list(found.values())
    freedom = len(contexts) - len(apart)
    if min(len(members) for members in apart) < 2 or freedom < _LEAST_FREEDOM:
        return [together]
    return [apart] if freedom >= MIN_CONTEXTS - 1 else [together, apart]
