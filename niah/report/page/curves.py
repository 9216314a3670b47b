"""The report's curves over length: accuracy, KV memory, time and money."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median, quantiles
from typing import Any

from niah.grid import length_label
from niah.report.data.grid import ASSUMED_NOTE, CellSummary, Grid
from niah.report.data.summary import MemoryPoint, human_bytes, percent
from niah.report.page.chart import (
    SHAPES,
    Chart,
    Mark,
    Point,
    Scale,
    Series,
    across_lengths,
    band,
    down,
    down_log,
    length_ticks,
    mark_path,
    polyline,
    px,
)
from niah.report.page.svg import Label
from niah.report.palette import series_color
from niah.store.read import RunRecord
from niah.store.schema import Row

_SECONDS = (("total_s", "Time per cell", "median seconds, the cell's share of the prefill included"),
            ("first_token_s", "Time to the first token", "median seconds, the whole prefill included"))  # fmt: skip


def score_chart(grids: Sequence[Grid]) -> Chart | None:
    """Accuracy against length with bands of 95 %; None when nothing was answered."""
    totals = [{length: grid.at_length(length) for length in grid.lengths} for grid in grids]
    lengths = sorted({length for found in totals for length, cell in found.items() if cell.answered})
    if not lengths:
        return None
    x, y = across_lengths(lengths), down(0.0, 1.0)
    series, table = [], []
    for index, (grid, found) in enumerate(zip(grids, totals, strict=True)):
        cells = [(length, cell) for length in lengths if (cell := found[length]).answered]
        line = [(x(length), y(cell.share or 0.0)) for length, cell in cells]
        high = [(x(length), y(cell.interval.high)) for length, cell in cells]
        low = [(x(length), y(cell.interval.low)) for length, cell in cells]
        shape = SHAPES[index % len(SHAPES)]
        marks = [
            Mark(mark_path(shape, *place, 4.5), False, f"{grid.kv}\n{_column_words(length, cell)}")
            for place, (length, cell) in zip(line, cells, strict=True)
        ]
        name = f"{grid.kv} (broken)" if grid.broken else grid.kv
        outline = "" if grid.broken or not cells else band(high, low)
        dash = "5 4" if grid.broken else ""
        series.append(Series(name, series_color(index), shape, polyline(line), dash, outline, marks))
        known = dict(cells)
        table.append([name, *(_share_words(known.get(length)) for length in lengths)])
    ticks = [Label(px(y(share / 5)), f"{share * 20} %") for share in range(6)]
    note = "All depths together; bands are 95 % intervals over texts."
    if any(cell.is_assumed for found in totals for cell in found.values()):
        note += f" {ASSUMED_NOTE}"
    return _over_lengths("Accuracy against length", note, "accuracy", lengths, ticks, series, table)


def memory_chart(found: Sequence[tuple[str, Sequence[MemoryPoint]]]) -> Chart | None:
    """KV bytes against length, log 2 on both axes: points measured, hollow allocated, lines by formula.

    Args:
        found: name and points of each KV setting.
    """
    every = [point for _, members in found for point in members]
    kinds = ("logical_bytes", "allocated_bytes", "formula_bytes", "reference_bytes", "naive_mha_bytes")
    sizes = [size for point in every for kind in kinds if (size := getattr(point, kind))]
    if not sizes:
        return None
    lengths = sorted({point.length for point in every})
    low, high = math.floor(math.log2(min(sizes)) - 0.2), math.ceil(math.log2(max(sizes)) + 0.2)
    x, y = across_lengths(lengths), down_log(2.0**low, 2.0**high)
    longest = max((members for _, members in found), key=len)
    series = [
        Series("16-bit reference", "var(--ink)", "", polyline(_curve(longest, "reference_bytes", x, y)), "7 4"),
        Series("naive MHA formula", "var(--muted)", "", polyline(_curve(longest, "naive_mha_bytes", x, y)), "2 4"),
    ]
    table = []
    for index, (name, members) in enumerate(found):
        shape = SHAPES[index % len(SHAPES)]
        formula = polyline(_curve(members, "formula_bytes", x, y))
        marks = _memory_marks(name, members, shape, x, y)
        series.append(Series(name, series_color(index), shape, formula, marks=marks))
        known = {point.length: point for point in members}
        table.append([name, *(_memory_words(known.get(length)) for length in lengths)])
    step = max(1, (high - low) // 6)
    ticks = [Label(px(y(2.0**power)), human_bytes(2.0**power)) for power in range(low, high + 1, step)]
    series = [item for item in series if item.line or item.marks]
    note = (
        "Filled points are measured, hollow ones really held, lines are the formula. The naive formula counts a KV "
        "head for every attention head."
    )
    return _over_lengths("KV memory against length", note, "KV cache", lengths, ticks, series, table)


def time_charts(record: RunRecord) -> list[Chart]:
    """Seconds against length, per cell and to the first token; without those that no row knows."""
    found = []
    for name, title, what in _SECONDS:
        note = f"Answered cells: {what}; bands hold the middle 80 %."
        chart = spread_chart(record, title, note, "seconds", _seconds_reader(name))
        if chart is not None:
            found.append(chart)
    return found


def _seconds_reader(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row.timing, name)


def cost_chart(record: RunRecord) -> Chart | None:
    """Money per cell against length; None where no row says what it cost."""
    title, note = (
        "Cost per cell",
        "Answered cells: median by the run's price list; bands hold the middle 80 %.",
    )
    return spread_chart(record, title, note, "US dollars", lambda row: row.cost_usd)


def spread_chart(record: RunRecord, title: str, note: str, unit: str, read: Callable[[Row], Any]) -> Chart | None:
    """Median of a positive figure of answered rows against length, with a band from the 10th to the 90th percentile.

    Args:
        read: the figure of a row; None and zero mean that it is not known.
    """
    values: dict[str, dict[int, list[float]]] = {}
    for row in record.rows:
        value = read(row) if row.outcome == "answered" else None
        if value:
            values.setdefault(row.kv, {}).setdefault(row.length, []).append(float(value))
    kvs = [kv for kv in record.kvs() if kv in values]
    if not kvs:
        return None
    spreads = {kv: {length: _spread(members) for length, members in sorted(values[kv].items())} for kv in kvs}
    every = [edge for found in spreads.values() for spread in found.values() for edge in spread]
    lengths = sorted({length for found in spreads.values() for length in found})
    ticks = _decade_ticks(min(every), max(every))
    x, y = across_lengths(lengths), down_log(min([ticks[0], *every]), max([ticks[-1], *every]))
    series, table = [], []
    for index, kv in enumerate(record.kvs()):
        if kv not in spreads:
            continue
        found = spreads[kv]
        line = [(x(length), y(spread[1])) for length, spread in found.items()]
        outline = band([(x(n), y(s[2])) for n, s in found.items()], [(x(n), y(s[0])) for n, s in found.items()])
        shape = SHAPES[index % len(SHAPES)]
        marks = [
            Mark(mark_path(shape, *place, 4.5), False, f"{kv}, {length:,} tokens\n{_spread_words(found[length], unit)}")
            for place, length in zip(line, found, strict=True)
        ]
        series.append(Series(kv, series_color(index), shape, polyline(line), band=outline, marks=marks))
        table.append([kv, *(_spread_words(found.get(length), unit) for length in lengths)])
    labels = [Label(px(y(tick)), f"{tick:g}") for tick in ticks]
    return _over_lengths(title, note, unit, lengths, labels, series, table)


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    """10th, 50th and 90th percentile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    tenths = quantiles(values, n=10, method="inclusive")
    return tenths[0], median(values), tenths[-1]


def _decade_ticks(low: float, high: float) -> list[float]:
    """Labels for a log axis: 1, 2, 5 in every decade, fewer where there are many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for parts in ((1, 2, 5), (1, 3), (1,)):
        ticks = [part * 10.0**power for power in range(first, last + 1) for part in parts]
        above = next((i for i, tick in enumerate(ticks) if tick >= high), len(ticks) - 1)
        below = max((i for i, tick in enumerate(ticks) if tick <= low), default=0)
        if below == above:  # one value only: a scale needs two ends
            below, above = max(0, below - 1), min(above + 1, len(ticks) - 1)
        ticks = ticks[below : above + 1]
        if len(ticks) <= 7:
            break
    return ticks[:: math.ceil(len(ticks) / 8)]


def _spread_words(spread: tuple[float, float, float] | None, unit: str) -> str:
    if spread is None:
        return "not known"
    low, middle, high = spread
    return f"{middle:.3g} {unit} ({low:.3g}–{high:.3g})"


def _memory_marks(name: str, members: Sequence[MemoryPoint], shape: str, x: Scale, y: Scale) -> list[Mark]:
    marks = []
    for point in members:
        words = f"{name}, {point.length:,} tokens\n{_memory_words(point)}"
        for size, radius, hollow in ((point.allocated_bytes, 7.5, True), (point.logical_bytes, 4.5, False)):
            if size:
                marks.append(Mark(mark_path(shape, x(point.length), y(size), radius), hollow, words))
    return marks


def _curve(members: Sequence[MemoryPoint], what: str, x: Scale, y: Scale) -> list[Point]:
    return [(x(point.length), y(size)) for point in members if (size := getattr(point, what))]


def _over_lengths(
    title: str,
    note: str,
    y_title: str,
    lengths: Sequence[int],
    y_ticks: list[Label],
    series: list[Series],
    table: list[list[str]],
) -> Chart:
    return Chart(
        title=title,
        note=note,
        x_title="length (tokens)",
        y_title=y_title,
        x_ticks=length_ticks(lengths, across_lengths(lengths)),
        y_ticks=y_ticks,
        series=series,
        head=["KV setting", *(f"{length_label(length)} tokens" for length in lengths)],
        table=table,
    )


def _column_words(length: int, cell: CellSummary) -> str:
    return f"{length:,} tokens: {_share_words(cell)}"


def _share_words(cell: CellSummary | None) -> str:
    if cell is None or cell.share is None:
        return "no answer"
    low, high = percent(cell.interval.low), percent(cell.interval.high)
    return f"{percent(cell.share)} ({low}–{high}, n {cell.answered})"


def _memory_words(point: MemoryPoint | None) -> str:
    if point is None:
        return "not known"
    named = (
        ("measured", point.logical_bytes),
        ("allocated", point.allocated_bytes),
        ("formula", point.formula_bytes),
    )
    return ", ".join(f"{name} {size:,} B" for name, size in named if size is not None)
