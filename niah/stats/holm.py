"""Holm's correction: how small a p-value must be when many tests are made at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given (S. Holm, Scand J Statist 6, 1979).

    Calling all below α significant keeps the chance of even one false alarm below α, whatever their dependence.

    Raises:
        ValueError: a p-value is outside 0–1.
    """
    if any(not 0 <= p <= 1 for p in p_values):
        raise ValueError("p-values must be between 0 and 1")
    count = len(p_values)
    adjusted = [0.0] * count
    largest = 0.0
    for rank, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def holm_levels(p_values: Sequence[float], alpha: float = 0.05) -> list[float]:
    """The level at which Holm's procedure tests each p-value, in the order given.

    ``alpha`` over the number of tests for the smallest; over one fewer for the next, as long as all before are
    rejected; the first that is not keeps its level for all that follow. A p-value below its level is one whose
    adjusted value is below ``alpha``, and an interval of confidence 1 - level agrees with it.
    """
    count = len(p_values)
    levels = [0.0] * count
    rejected = 0
    stopped = False
    for index in sorted(range(count), key=lambda i: p_values[i]):
        levels[index] = alpha / (count - rejected)
        stopped = stopped or p_values[index] >= levels[index]
        rejected += not stopped
    return levels
