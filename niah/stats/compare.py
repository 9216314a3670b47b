"""Is one KV setting worse than another? Paired, clustered by context, and honest about too few pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from niah.stats.bootstrap import Floats, context_sums, expanded_interval, hull, ratio_interval, resampled
from niah.stats.holm import holm
from niah.stats.intervals import Interval
from niah.stats.paired import mcnemar_p, paired_interval
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
        ci: 95 % interval of ``delta``: the widest at each end of the paired score interval, and of bootstrap and t
            interval over contexts.
        p: two-sided exact McNemar test. ``p_holm``: corrected over all that was compared together.
        logprob_delta: mean change of the expected answer's log-probability (nats), over ``logprob_pairs``;
            ``logprob_ci`` is its 95 % interval over contexts.
        margin: what counts as equivalent, as a share.
        verdict: in words; see ``judge``.
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

    @property
    def logprob_lower(self) -> bool:
        """Whether the log-probability of the right answer fell beyond doubt: damage that accuracy may not show."""
        return self.logprob_ci is not None and self.logprob_ci.high < 0

    def drops_more_than(self, limit: float) -> bool:
        """Whether accuracy fell by more than ``limit`` beyond doubt: the interval's better edge is below it."""
        return not self.broken and self.ci is not None and self.ci.high < -limit

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
            "p_holm": self.p_holm,
            "logprob_pairs": self.logprob_pairs,
            "logprob_delta": self.logprob_delta,
            "logprob_ci": None if self.logprob_ci is None else [self.logprob_ci.low, self.logprob_ci.high],
            "margin": self.margin,
            "verdict": self.verdict,
            "broken": self.broken,
            "caveats": list(self.caveats),
        }


def judge(
    ci: Interval | None, p: float, contexts: int, margin: float = MARGIN, confidence: float = CONFIDENCE
) -> Verdict:
    """The verdict from the interval's edges, never from the point.

    ``equivalent``: the whole interval lies within the margin, even where a small difference is certain.
    ``worse`` / ``better``: the whole interval lies on one side of zero and the exact test rejects at 5 %.
    ``too few to say``: everything else, and always with fewer than six contexts.
    """
    if ci is None or contexts < MIN_CONTEXTS:
        return "too few to say"
    if -margin < ci.low and ci.high < margin:
        return "equivalent"
    if p < 1 - confidence and ci.high < 0:
        return "worse"
    if p < 1 - confidence and ci.low > 0:
        return "better"
    return "too few to say"


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
) -> Comparison:
    """As ``compare_rows``, from pairs that are joined already: all of them, one length, one depth band."""
    if not 0 < margin < 1:
        raise ValueError(f"margin must be between 0 and 1, both excluded, not {margin}")
    count = len(pairs)
    contexts = pairs.context_count
    deltas = pairs.new.astype(float) - pairs.base.astype(float)
    ci = None
    if count:
        ci = hull(
            paired_interval(pairs.lost, pairs.gained, count, confidence), *_over_contexts(deltas, pairs, confidence)
        )
    p = mcnemar_p(pairs.lost, pairs.gained)
    known = ~np.isnan(pairs.logprob_deltas)
    logprobs = pairs.where(known)
    logprob_ci = _over_contexts(logprobs.logprob_deltas, logprobs, confidence)
    spoilt = any(name in (base, new) for name in broken)
    logprob_delta = float(logprobs.logprob_deltas.mean()) if len(logprobs) else None
    verdict = "too few to say" if spoilt else judge(ci, p, contexts, margin, confidence)
    return Comparison(
        base=base,
        new=new,
        pairs=count,
        contexts=contexts,
        lost=pairs.lost,
        gained=pairs.gained,
        accuracy_base=float(pairs.base.mean()) if count else None,
        accuracy_new=float(pairs.new.mean()) if count else None,
        delta=float(deltas.mean()) if count else None,
        ci=ci,
        p=p,
        logprob_pairs=len(logprobs),
        logprob_delta=logprob_delta,
        logprob_ci=logprob_ci[0] if logprob_ci else None,
        margin=margin,
        verdict=verdict,
        broken=spoilt,
        caveats=tuple(_caveats(pairs, ci, logprob_ci, verdict, [n for n in (base, new) if n in broken])),
    )


def _over_contexts(values: Floats, pairs: Pairs, confidence: float) -> tuple[Interval, ...]:
    """The interval of the mean over contexts; none when there are fewer than two of them.

    The wider at each end of bootstrap and t interval: where a few contexts lose much and most lose nothing, either
    alone is too narrow on one side.
    """
    contexts = pairs.context_count
    if contexts < 2:
        return ()
    columns = np.stack([values, np.ones_like(values)], axis=1)
    sums = context_sums(columns, pairs.contexts, contexts)
    totals = resampled(sums)
    drawn = expanded_interval(totals[:, 0] / totals[:, 1], contexts, confidence)
    return (hull(drawn, ratio_interval(sums, confidence)),)


def _caveats(
    pairs: Pairs, ci: Interval | None, logprob_ci: Sequence[Interval], verdict: Verdict, broken: Sequence[str]
) -> Iterable[str]:
    for name in dict.fromkeys(broken):
        yield f"{name} failed its canary: its figures are not interpreted"
    if not len(pairs):
        yield "no cell was answered on both sides"
        return
    if pairs.context_count < MIN_CONTEXTS:
        yield (
            f"only {pairs.context_count} contexts (lengths × trials); a verdict needs {MIN_CONTEXTS}, because "
            "questions of one context can fail together"
        )
    if pairs.unanswered:
        yield f"{pairs.unanswered} cells have no answer on at least one side and are left out, not counted as wrong"
    if pairs.base_only or pairs.new_only:
        yield f"{pairs.base_only} cells only in the base and {pairs.new_only} only in the new one are left out"
    if pairs.same_cells == len(pairs):
        yield "both sides are the same measurement"
    elif verdict == "equivalent" and ci is not None and (ci.high < 0 or ci.low > 0):
        yield f"a small {'loss' if ci.high < 0 else 'gain'} within the margin is certain"
    if float((pairs.base & pairs.new).mean()) >= SATURATED:
        yield "nearly all pairs are right on both sides: accuracy is saturated and hides damage; harder cells see more"
    if float((~pairs.base & ~pairs.new).mean()) >= SATURATED:
        yield "nearly all pairs are wrong on both sides: the base itself cannot do this task, so nothing can be lost"
    if not broken and logprob_ci and logprob_ci[0].high < 0 and verdict != "worse":
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
