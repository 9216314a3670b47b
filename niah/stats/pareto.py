"""Quality against memory: which settings are beaten by another one that is both smaller and no worse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """One setting: KV bytes per token and accuracy 0–1; either is None where it is not known."""

    name: str
    kv_bytes_per_token: float | None
    accuracy: float | None


def pareto_edge(points: Iterable[Point]) -> list[Point]:
    """Points that no other beats, by bytes ascending: to beat is to be smaller or better, and worse in neither.

    Points without bytes or accuracy are left out. Equal points stay together.
    """
    known = [
        (point.kv_bytes_per_token, point.accuracy, point)
        for point in points
        if point.kv_bytes_per_token is not None and point.accuracy is not None
    ]
    edge = [
        (size, share, point)
        for size, share, point in known
        if not any(s <= size and a >= share and (s < size or a > share) for s, a, _ in known)
    ]
    return [point for _, _, point in sorted(edge, key=lambda item: item[:2])]
