"""Is one KV setting worse than another? Paired, clustered by context, and honest about too few pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np

from niah.grid import counted
from niah.stats.bootstrap import Floats, context_sums, expanded_interval, hull, ratio_interval, ratio_p, resampled
from niah.stats.clustered import Context, clustered_interval
from niah.stats.holm import holm
from niah.stats.intervals import RESOLUTION, Interval
from niah.stats.paired import mcnemar_p, paired_interval, score_interval
from niah.stats.pairs import Pairs, join_rows
from niah.stats.power import ALPHA, MIN_CONTEXTS
from niah.store.schema import Row
from niah.types import JSON

Verdict: TypeAlias = Literal["better", "worse", "equivalent", "too few to say"]
MARGIN = 0.02
CONFIDENCE = 0.95
# accuracy sees nothing when this share of pairs is right on both sides
SATURATED = 0.97


@dataclass(frozen=True, slots=True)
class Comparison:
    """``new`` against ``base`` over their common pairs. Deltas are new minus base.

    Attributes:
        base, new: what is compared, in words.
        pairs: cells that both answered; ``contexts`` of them are independent texts.
        lost, gained: pairs that only the base, only the new setting got right.
        accuracy_base, accuracy_new: shares right over the pairs; None without pairs.
        ci: interval of ``delta``: the widest at each end of the paired score interval, and of bootstrap and t
            interval over contexts; without what is impossible.
        p: two-sided exact McNemar test, which takes pairs as independent. ``p_contexts``: t-test over contexts; None
            with fewer than two. ``p_holm``: the larger of both, corrected over all that was compared together.
        logprob_delta: mean change of the expected answer's log-probability (nats), over ``logprob_pairs``;
            ``logprob_ci`` is its 95 % interval over contexts.
        margin: what counts as equivalent, as a share.
        verdict: in words; see ``judge``. ``why``: what kept it open, empty when it is not.
        confidence: of the intervals. 0.95 for one comparison; of several compared ``together`` the step of Holm's
            procedure that this one was tested at, so that verdict, p and interval say the same.
        caveats: sentences that a reader of the verdict must know.
        broken: the setting failed its canary, and the figures are not to be interpreted.
    """

    base: str
    new: str
    pairs: int
    contexts: int
    lost: int
    gained: int
    accuracy_base: float | None
    accuracy_new: float | None
    delta: float | None
    ci: Interval | None
    p: float
    logprob_pairs: int
    logprob_delta: float | None
    logprob_ci: Interval | None
    margin: float
    verdict: Verdict
    caveats: tuple[str, ...] = ()
    p_holm: float | None = None
    broken: bool = False
    p_contexts: float | None = None
    confidence: float = CONFIDENCE
    together: int = 1
    why: str = ""

    @property
    def few_contexts(self) -> bool:
        """Whether there are too few texts for any verdict."""
        return self.contexts < MIN_CONTEXTS

    @property
    def logprob_lower(self) -> bool:
        """Whether the log-probability of the right answer fell beyond doubt: damage that accuracy may not show."""
        return not self.few_contexts and self.logprob_ci is not None and self.logprob_ci.is_below_zero

    def drops_more_than(self, limit: float) -> bool:
        """Whether accuracy fell by more than ``limit`` beyond doubt: the interval's better edge is below it."""
        return not self.few_contexts and self.seems_to_drop_more_than(limit)

    def seems_to_drop_more_than(self, limit: float) -> bool:
        """The same with too few contexts for a verdict, too: not beyond doubt then, and no reason to pass."""
        return not self.broken and self.ci is not None and self.ci.high < -limit - RESOLUTION

    def to_json(self) -> dict[str, JSON]:
        """Stable names; intervals as ``[low, high]``."""
        return {
            "base": self.base,
            "new": self.new,
            "pairs": self.pairs,
            "contexts": self.contexts,
            "lost": self.lost,
            "gained": self.gained,
            "accuracy_base": self.accuracy_base,
            "accuracy_new": self.accuracy_new,
            "delta": self.delta,
            "ci": None if self.ci is None else [self.ci.low, self.ci.high],
            "p": self.p,
            "p_contexts": self.p_contexts,
            "p_holm": self.p_holm,
            "confidence": self.confidence,
            "together": self.together,
            "logprob_pairs": self.logprob_pairs,
            "logprob_delta": self.logprob_delta,
            "logprob_ci": None if self.logprob_ci is None else [self.logprob_ci.low, self.logprob_ci.high],
            "margin": self.margin,
            "verdict": self.verdict,
            "why": self.why,
            "broken": self.broken,
            "caveats": list(self.caveats),
        }


def judge(
    ci: Interval | None, p: float, contexts: int, margin: float = MARGIN, confidence: float = CONFIDENCE
) -> Verdict:
    """The verdict from the interval's edges, never from the point.

    ``equivalent``: the whole interval lies within the margin, even where a small difference is certain.
    ``worse`` / ``better``: the whole interval lies on one side of zero by more than rounding, and p is below 1 minus
    the confidence.
    ``too few to say``: everything else, and always with fewer than six contexts.

    Args:
        p: the larger of the exact test's and, where it is known, the one over contexts.
    """
    if ci is None or contexts < MIN_CONTEXTS:
        return "too few to say"
    if -margin < ci.low and ci.high < margin:
        return "equivalent"
    if p < 1 - confidence and ci.is_below_zero:
        return "worse"
    if p < 1 - confidence and ci.is_above_zero:
        return "better"
    return "too few to say"


def decisive_p(pairs: Pairs) -> float:
    """The p-value that a verdict goes by: the larger of the exact test and the t-test over contexts.

    The first alone would cry wolf where questions of a context fail together, the second where hardly any pair differs.
    """
    over_contexts = _context_p(pairs)
    exact = mcnemar_p(pairs.lost, pairs.gained)
    return exact if over_contexts is None else max(exact, over_contexts)


def compare_rows(
    base_rows: Iterable[Row],
    new_rows: Iterable[Row],
    *,
    base: str = "base",
    new: str = "new",
    margin: float = MARGIN,
    broken: Sequence[str] = (),
    confidence: float = CONFIDENCE,
) -> Comparison:
    """Compare the rows of two settings (one setting on each side), joined on ``pair_id``.

    Args:
        base, new: names for tables and sentences.
        margin: largest difference in accuracy, as a share, that counts as none.
        broken: which of the two names failed their canary.
        confidence: of the intervals; 1 minus it is the level of the test.

    Raises:
        ValueError: the margin is not between 0 and 1, both excluded.
    """
    return compare_pairs(
        join_rows(base_rows, new_rows), base=base, new=new, margin=margin, broken=broken, confidence=confidence
    )


def compare_pairs(
    pairs: Pairs,
    *,
    base: str = "base",
    new: str = "new",
    margin: float = MARGIN,
    broken: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    together: int = 1,
) -> Comparison:
    """As ``compare_rows``, from pairs that are joined already: all of them, one length, one depth band.

    Args:
        together: how many were compared together; ``confidence`` is then that of this one's step.
    """
    if not 0 < margin < 1:
        raise ValueError(f"margin must be between 0 and 1, both excluded, not {margin}")
    count, contexts = len(pairs), pairs.context_count
    ci = _difference_interval(pairs, confidence) if count else None
    p, p_decisive = mcnemar_p(pairs.lost, pairs.gained), decisive_p(pairs)
    known = ~np.isnan(pairs.logprob_deltas)
    logprobs = pairs.where(known)
    logprob_ci = _over_contexts(logprobs.logprob_deltas, logprobs, confidence)
    spoilt = [name for name in dict.fromkeys((base, new)) if name in broken]
    verdict = "too few to say" if spoilt else judge(ci, p_decisive, contexts, margin, confidence)
    found = Comparison(
        base=base,
        new=new,
        pairs=count,
        contexts=contexts,
        lost=pairs.lost,
        gained=pairs.gained,
        accuracy_base=float(pairs.base.mean()) if count else None,
        accuracy_new=float(pairs.new.mean()) if count else None,
        delta=(pairs.gained - pairs.lost) / count if count else None,
        ci=ci,
        p=p,
        logprob_pairs=len(logprobs),
        logprob_delta=float(logprobs.logprob_deltas.mean()) if len(logprobs) else None,
        logprob_ci=logprob_ci[0] if logprob_ci else None,
        margin=margin,
        verdict=verdict,
        broken=bool(spoilt),
        p_contexts=_context_p(pairs),
        confidence=confidence,
        together=together,
    )
    found = replace(found, why=_why_open(found, p_decisive))
    return replace(found, caveats=tuple(_caveats(pairs, found, spoilt)))


def _difference_interval(pairs: Pairs, confidence: float) -> Interval:
    """The interval of new minus base, within what is possible."""
    deltas, count = pairs.new.astype(float) - pairs.base.astype(float), len(pairs)
    found = hull(
        paired_interval(pairs.lost, pairs.gained, count, confidence), *_over_contexts(deltas, pairs, confidence)
    )
    found = _far_end(found, pairs, deltas, confidence)
    base = _base_interval(pairs, confidence)
    # nobody can lose more than the base has, nor gain more than it lacks
    return found.within(-base.high, 1 - base.low)


def _far_end(found: Interval, pairs: Pairs, deltas: Floats, confidence: float) -> Interval:
    """The end away from zero, not nearer than the score interval of as many pairs as these are worth.

    A few contexts that happen to lose little also differ little, so that symmetric intervals miss larger losses; the
    score interval knows that a larger loss would vary more.
    """
    contexts, count = pairs.context_count, len(pairs)
    variance, lean = float(deltas.var()), pairs.gained - pairs.lost
    if contexts < 2 or not variance or not lean:
        return found
    half = ratio_interval(_value_sums(deltas, pairs), confidence).width / 2
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    worth = 1.0 if not half else min(1.0, variance * (z / half) ** 2 / count)
    score = score_interval(pairs.lost * worth, pairs.gained * worth, count * worth, confidence)
    return hull(found, Interval(score.low, found.high) if lean < 0 else Interval(found.low, score.high))


def _base_interval(pairs: Pairs, confidence: float) -> Interval:
    answered = np.bincount(pairs.contexts)
    hits = np.bincount(pairs.contexts, weights=pairs.base)
    first = np.unique(pairs.contexts, return_index=True)[1]
    return clustered_interval(
        [Context(int(pairs.lengths[i]), int(h), int(n)) for i, h, n in zip(first, hits, answered, strict=True)],
        confidence,
    )


def _value_sums(values: Floats, pairs: Pairs) -> Floats:
    return context_sums(np.stack([values, np.ones_like(values)], axis=1), pairs.contexts, pairs.context_count)


def _context_p(pairs: Pairs) -> float | None:
    if pairs.context_count < 2:
        return None
    return ratio_p(_value_sums(pairs.new.astype(float) - pairs.base.astype(float), pairs))


def _over_contexts(values: Floats, pairs: Pairs, confidence: float) -> tuple[Interval, ...]:
    """The interval of the mean over contexts; none when there are fewer than two of them.

    The wider at each end of bootstrap and t interval: where a few contexts lose much and most lose nothing, either
    alone is too narrow on one side.
    """
    contexts = pairs.context_count
    if contexts < 2:
        return ()
    sums = _value_sums(values, pairs)
    totals = resampled(sums)
    drawn = expanded_interval(totals[:, 0] / totals[:, 1], contexts, confidence)
    return (hull(drawn, ratio_interval(sums, confidence)),)


def _why_open(item: Comparison, p_decisive: float) -> str:
    """What kept a verdict open, in words."""
    if item.broken:
        return "a canary failed"
    if item.verdict != "too few to say":
        return ""
    if item.ci is None:
        return "no cell was answered on both sides"
    if item.few_contexts:
        return f"{item.contexts} of the {MIN_CONTEXTS} contexts (lengths × trials) that a verdict needs"
    level = 1 - item.confidence
    if item.together > 1 and level <= p_decisive < ALPHA:
        return f"p = {p_decisive:.3f} alone is no verdict among {item.together} that are compared together"
    if _is_apart(item):
        return f"the interval is apart from zero, but the exact test has p = {item.p:.3f}"
    if p_decisive < level:
        return "the interval reaches zero"
    if item.p < level:
        return f"pair by pair p = {item.p:.2g}, but over contexts p = {p_decisive:.3f}"
    return "the interval holds no change as well as changes beyond the margin"


def _is_apart(item: Comparison) -> bool:
    return item.ci is not None and (item.ci.is_below_zero or item.ci.is_above_zero)


def _caveats(pairs: Pairs, item: Comparison, broken: Sequence[str]) -> Iterable[str]:
    for name in broken:
        yield f"{name} failed its canary: its figures are not interpreted"
    if not len(pairs):
        yield "no cell was answered on both sides"
        return
    if item.few_contexts:
        yield (
            f"only {counted(item.contexts, 'context')} (lengths × trials); a verdict needs {MIN_CONTEXTS}, because "
            "questions of one context can fail together"
        )
    elif item.why and not broken and (item.p < ALPHA or _is_apart(item)):
        yield item.why
    if pairs.unanswered:
        have, are = ("has", "is") if pairs.unanswered == 1 else ("have", "are")
        cells = counted(pairs.unanswered, "cell")
        yield f"{cells} {have} no answer on at least one side and {are} left out, not counted as wrong"
    if pairs.base_only or pairs.new_only:
        base_only = counted(pairs.base_only, "cell")
        yield f"{base_only} only in the base and {pairs.new_only} only in the new one are left out"
    if pairs.same_cells == len(pairs):
        yield "both sides are the same measurement"
    elif item.verdict == "equivalent" and item.delta is not None and _is_apart(item):
        yield f"a small {'loss' if item.delta < 0 else 'gain'} within the margin is certain"
    if float((pairs.base & pairs.new).mean()) >= SATURATED:
        yield "nearly all pairs are right on both sides: accuracy is saturated and hides damage; harder cells see more"
    if float((~pairs.base & ~pairs.new).mean()) >= SATURATED:
        yield "nearly all pairs are wrong on both sides: the base itself cannot do this task, so nothing can be lost"
    if item.logprob_lower and not broken and item.verdict != "worse":
        yield "the log-probability of the right answer fell beyond doubt: damage that accuracy does not show"


@dataclass(frozen=True, slots=True)
class CellDifference:
    """One square of a difference map.

    Attributes:
        delta: accuracy new minus base over ``pairs``; ``ci`` its paired score interval.
        p: exact McNemar; ``p_holm`` corrected over all squares of the map.
        significant: ``p_holm`` is below 5 %; other squares are to be paled.
        logprob_delta: mean change in nats; None where unknown.
    """

    length: int
    depth: float
    pairs: int
    lost: int
    gained: int
    delta: float
    ci: Interval
    p: float
    p_holm: float
    logprob_delta: float | None

    @property
    def significant(self) -> bool:
        return self.p_holm < ALPHA


def cell_differences(pairs: Pairs) -> list[CellDifference]:
    """Every (length, depth) that has pairs, tested on its own and corrected by Holm over all of them."""
    cells = list(pairs.by_cell())
    tests = [mcnemar_p(part.lost, part.gained) for _, part in cells]
    found = []
    for ((length, depth), part), p, p_holm in zip(cells, tests, holm(tests), strict=True):
        known = part.logprob_deltas[~np.isnan(part.logprob_deltas)]
        found.append(
            CellDifference(
                length=length,
                depth=depth,
                pairs=len(part),
                lost=part.lost,
                gained=part.gained,
                delta=(part.gained - part.lost) / len(part),
                ci=paired_interval(part.lost, part.gained, len(part)),
                p=p,
                p_holm=p_holm,
                logprob_delta=float(known.mean()) if len(known) else None,
            )
        )
    return found
