"""When enough trials are enough: whether a setting's verdict already holds at a level that allows several looks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from niah.stats.clustered import clustered_interval, contexts_of
from niah.stats.compare import MARGIN, compare_rows
from niah.stats.power import ALPHA
from niah.store.schema import Row

# looking after 6, 12, 24, 48 and 64 trials at 95 % would raise false alarms far above 5 %; stopping early asks for
# 99.9 % (Haybittle and Peto: strict while it runs, 95 % at the end)
STOP_CONFIDENCE = 0.999
# equivalence raises no alarm, and would hardly ever be shown at 99.9 %
EQUIVALENT_CONFIDENCE = 0.99
# without anything to compare with, accuracy is known well enough when its 95 % interval is this narrow
NARROW = 0.1


def undecided(
    rows: Sequence[Row], kvs: Sequence[str], reference: str | None, broken: Collection[str] = ()
) -> dict[str, str]:
    """Settings that more trials would serve, each with the reason in words.

    A setting is decided when it is better or worse at 99.9 %, equivalent at 99 %, or broken, and stricter where so many
    settings are compared that the last verdict would ask for more; without a reference, when the interval of its
    accuracy is at most ten points wide. The reference is asked as often as any other needs it.

    Args:
        rows: of all settings; of a cell that is there twice the newest answered row counts.
        kvs: settings to look at, the reference among them or not.
    """
    if reference in broken:
        return {}
    others = [kv for kv in kvs if kv != reference]
    found: dict[str, str] = {}
    for kv in others if reference is not None and others else kvs:
        own = [row for row in rows if row.kv == kv]
        if kv in broken:
            continue
        if reference is not None and others:
            base = [row for row in rows if row.kv == reference]
            why = _straddles(base, own, max(1, len(_judged(rows, reference, broken))))
        else:
            why = _is_wide(own)
        if why:
            found[kv] = why
    return found


def _judged(rows: Sequence[Row], reference: str, broken: Collection[str]) -> set[str]:
    """Settings that the last verdict compares together, those that are decided already among them."""
    return {row.kv for row in rows} - {reference, *broken}


def _straddles(base: Sequence[Row], own: Sequence[Row], together: int) -> str:
    # no setting may count as decided that the correction for all settings then leaves open
    strictest = 1 - ALPHA / together
    equivalent = max(EQUIVALENT_CONFIDENCE, strictest)
    seen = compare_rows(base, own, margin=MARGIN, confidence=equivalent)
    if seen.ci is None:
        return "no answered pair yet"
    if seen.verdict == "equivalent" or (
        seen.verdict != "too few to say"
        and compare_rows(base, own, margin=MARGIN, confidence=max(STOP_CONFIDENCE, strictest)).verdict == seen.verdict
    ):
        return ""
    points = f"{seen.ci.low * 100:+z.1f} to {seen.ci.high * 100:+z.1f} points"
    return f"{points} at {equivalent * 100:.4g} % on {seen.pairs:,} pairs".replace("-", "−")


def _is_wide(own: Sequence[Row]) -> str:
    contexts = contexts_of(own)
    interval, answers = clustered_interval(contexts), sum(context.answered for context in contexts)
    if answers and interval.width <= NARROW:
        return ""
    return f"accuracy {interval.low * 100:.0f}–{interval.high * 100:.0f} % on {answers:,} answers"
