"""Several comparisons judged together: so that among many equal settings hardly one looks worse by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from niah.stats.compare import MARGIN, Comparison, compare_pairs, decisive_p
from niah.stats.holm import holm, holm_levels
from niah.stats.pairs import Pairs
from niah.stats.power import ALPHA, MIN_CONTEXTS


@dataclass(frozen=True, eq=False)
class Member:
    """Pairs of ``new`` with ``base``; ``broken`` are those of the two names that failed their canary."""

    base: str
    new: str
    pairs: Pairs
    broken: Sequence[str] = ()


def compare_together(members: Sequence[Member], margin: float = MARGIN) -> list[Comparison]:
    """One comparison a member, judged by Holm's procedure: the chance of even one wrong better or worse is 5 %.

    Each interval has the confidence of its step in that procedure, 95 % or more, so that verdict, p and interval agree.
    What can get no verdict anyway, because a canary failed or the texts are too few, is not counted.

    Raises:
        ValueError: the margin is not between 0 and 1, both excluded.
    """
    tests = [decisive_p(member.pairs) for member in members]
    judged = [i for i, m in enumerate(members) if m.pairs.context_count >= MIN_CONTEXTS and not m.broken]
    levels = dict(zip(judged, holm_levels([tests[i] for i in judged], ALPHA), strict=True))
    adjusted = dict(zip(judged, holm([tests[i] for i in judged]), strict=True))
    return [
        replace(
            compare_pairs(
                member.pairs,
                base=member.base,
                new=member.new,
                margin=margin,
                broken=member.broken,
                confidence=1 - levels.get(i, ALPHA),
                together=len(judged) if i in levels else 1,
            ),
            p_holm=adjusted.get(i, tests[i]),
        )
        for i, member in enumerate(members)
    ]
