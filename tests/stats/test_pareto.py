from __future__ import annotations

from niah.stats.pareto import Point, pareto_edge


def test_by_hand() -> None:
    points = [
        Point("bf16", 100, 0.90),
        Point("int8", 50, 0.90),
        Point("int4", 30, 0.70),
        Point("bad4", 30, 0.60),
        Point("twin4", 30, 0.70),
        Point("hosted", None, 0.99),
        Point("broken", 10, None),
    ]
    assert [point.name for point in pareto_edge(points)] == ["int4", "twin4", "int8"]
    assert pareto_edge([]) == []
