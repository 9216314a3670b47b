"""Quality against memory: what each KV setting keeps for the bytes that it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from niah.report.data.summary import SettingSummary, human_bytes, percent
from niah.report.page.chart import (
    LEFT,
    PLOT_WIDTH,
    SHAPES,
    Chart,
    Mark,
    Scale,
    Series,
    across_log,
    down,
    mark_path,
    polyline,
    px,
)
from niah.report.page.svg import Label
from niah.report.palette import series_color
from niah.stats.pareto import Point, pareto_edge

_NAME_HEIGHT = 14
_NAME_REACH = 120


def tradeoff_chart(settings: Sequence[SettingSummary]) -> Chart | None:
    """Accuracy against KV bytes per token with 95 % intervals; None when no setting has both.

    The line joins the settings that no other one beats: none is both smaller and at least as good. A broken setting is
    hollow and beats nothing.
    """
    known = [(i, s) for i, s in enumerate(settings) if s.kv_bytes_per_token and s.total.share is not None]
    if not known:
        return None
    sizes = [s.kv_bytes_per_token or 1.0 for _, s in known]
    low, high = math.floor(math.log2(min(sizes)) - 0.3), math.ceil(math.log2(max(sizes)) + 0.3)
    x, y = across_log(2.0**low, 2.0**high), down(0.0, 1.0)
    points = [Point(s.kv, s.kv_bytes_per_token, s.total.share) for _, s in known if not s.broken]
    edge = pareto_edge(points)
    series = []
    if len(edge) > 1:
        places = [(x(p.kv_bytes_per_token or 1.0), y(p.accuracy or 0.0)) for p in edge]
        series.append(Series("not beaten by a smaller one", "var(--muted)", "", polyline(places), "4 4"))
    heights: list[tuple[float, float]] = []
    for index, setting in known:
        series.append(_setting_series(index, setting, x(setting.kv_bytes_per_token or 1.0), y, heights))
    on_edge = {point.name for point in edge}
    step = max(1, (high - low) // 6)
    return Chart(
        title="Quality against memory",
        note="Accuracy over all cells against KV bytes per token; bars: 95 % over texts. Better is up and left.",
        x_title="KV bytes per token",
        y_title="accuracy",
        x_ticks=[Label(px(x(2.0**p)), human_bytes(2.0**p)) for p in range(low, high + 1, step)],
        y_ticks=[Label(px(y(share / 5)), f"{share * 20} %") for share in range(6)],
        series=series,
        head=["KV setting", "KV bytes per token", "accuracy", "95 % interval", "n", "beaten"],
        table=[_line(setting, on_edge) for _, setting in known],
    )


def _setting_series(index: int, item: SettingSummary, x: float, y: Scale, taken: list[tuple[float, float]]) -> Series:
    total, shape = item.total, SHAPES[index % len(SHAPES)]
    center = y(total.share or 0.0)
    top, bottom = y(total.interval.high), y(total.interval.low)
    whisker = f"M{px(x)},{px(top)}V{px(bottom)}M{px(x - 4)},{px(top)}h8M{px(x - 4)},{px(bottom)}h8"
    right = x < LEFT + PLOT_WIDTH * 0.7
    words = f"{item.kv}{' (broken)' if item.broken else ''}\n{item.kv_bytes_per_token:,.0f} bytes per token, "
    words += f"{percent(total.share or 0.0)} right ({percent(total.interval.low)}–{percent(total.interval.high)})"
    mark = Mark(
        mark_path(shape, x, center, 5.5),
        item.broken,
        words,
        whisker,
        name=item.kv if len(item.kv) <= 24 else f"{item.kv[:23]}…",
        name_x=px(x + 10 if right else x - 10),
        name_y=px(_free(x, center + 4, taken)),
        name_anchor="start" if right else "end",
    )
    return Series(f"{item.kv} (broken)" if item.broken else item.kv, series_color(index), shape, "", marks=[mark])


def _free(x: float, y: float, taken: list[tuple[float, float]]) -> float:
    """The height next to ``y`` where a name runs into no other one; it is then taken."""
    for step in (0, 1, -1, 2, -2, 3, -3):
        place = y + step * _NAME_HEIGHT
        if all(abs(place - other_y) >= _NAME_HEIGHT or abs(x - other_x) > _NAME_REACH for other_x, other_y in taken):
            break
    else:
        place = y
    taken.append((x, place))
    return place


def _line(item: SettingSummary, on_edge: set[str]) -> list[str]:
    total = item.total
    return [
        item.kv,
        f"{item.kv_bytes_per_token:,.1f}",
        percent(total.share or 0.0),
        f"{percent(total.interval.low)}–{percent(total.interval.high)}",
        f"{total.answered:,}",
        "broken" if item.broken else "no" if item.kv in on_edge else "yes",
    ]
