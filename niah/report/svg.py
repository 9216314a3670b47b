"""Geometry of the report's own SVG pictures: maps and curves as plain numbers that the templates write down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from niah.grid import length_label
from niah.report.difference import Difference, PairSummary, points
from niah.report.drawing import edges, thinned
from niah.report.heatmap import CellSummary, Grid
from niah.report.palette import EMPTY, Palette, difference_color, series_color, share_color
from niah.report.summary import MemoryPoint, human_bytes, percent

_LEFT, _TOP, _BOTTOM, _RIGHT = 46, 6, 42, 8
_CHART_LEFT, _CHART_WIDTH, _CHART_HEIGHT = 78, 960, 330
SHAPES = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a place along one axis, in pixels."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Square:
    """One square of a map, in pixels, with what is written in it and what its tooltip says.

    Attributes:
        failed, truncated: ``""``, ``"part"`` (some of the trials) or ``"all"`` (no answer at all).
    """

    x: float
    y: float
    width: float
    height: float
    fill: str
    ink: str
    text: str
    tooltip: str
    length: int
    depth: float
    failed: str = ""
    truncated: str = ""
    refused: bool = False
    few: bool = False


@dataclass(frozen=True, slots=True)
class Map:
    """A heatmap or difference map: its squares, axes and the same in words."""

    kind: str
    kv: str
    title: str
    width: float
    height: float
    plot_height: float
    squares: list[Square]
    columns: list[Label]
    lines: list[Label]
    head: list[str]
    table: list[list[str]]
    broken: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """A measured point: a path in pixels with its tooltip."""

    path: str
    hollow: bool
    tooltip: str


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: a line, perhaps a band around it, and its points."""

    name: str
    color: str
    shape: str
    line: str
    dash: str = ""
    band: str = ""
    marks: list[Mark] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves over length, in pixels, and the same as a table."""

    title: str
    width: float
    height: float
    left: float
    plot_height: float
    x_title: str
    y_title: str
    x_ticks: list[Label]
    y_ticks: list[Label]
    series: list[Series]
    head: list[str]
    table: list[list[str]]


def grid_map(grid: Grid, palette: Palette) -> Map:
    """A setting's heatmap; the scale of colors is always 0 to 1."""

    def make(x: float, y: float, width: float, height: float, length: int, depth: float) -> Square | None:
        cell = grid.cells.get((length, depth))
        if cell is None:
            return None
        color = share_color(cell.share, palette) if cell.share is not None else None
        whole = "all" if cell.share is None else "part"
        return Square(
            x, y, width, height,
            fill=color.hex if color else EMPTY,
            ink=color.ink if color else "#444444",
            text="" if cell.share is None else f"{cell.share * 100:.0f}",
            tooltip=_cell_words(cell, length, depth),
            length=length,
            depth=depth,
            failed=whole if cell.failed else "",
            truncated=whole if cell.truncated else "",
            refused=cell.refused > 0,
            few=cell.few,
        )  # fmt: skip

    # the page says the model and the task once, above all maps
    title = f"{grid.kv} · n = {grid.total().answered:,}"
    return _map("accuracy", grid.kv, title, grid.lengths, grid.depths, make, _grid_table(grid), grid.broken)


def difference_picture(difference: Difference) -> Map:
    """A difference map; full color from 50 points on."""

    def make(x: float, y: float, width: float, height: float, length: int, depth: float) -> Square | None:
        cell = difference.cells.get((length, depth))
        if cell is None:
            return None
        color, tooltip = difference_color(cell.delta), _pair_words(cell, length, depth)
        return Square(x, y, width, height, color.hex, color.ink, points(cell.delta), tooltip, length, depth)

    cells = difference.cells
    table = [
        [_depth(y), *(f"{points(cells[x, y].delta)} of {cells[x, y].pairs}" if (x, y) in cells else "no pair"
                      for x in difference.lengths)]
        for y in difference.depths
    ]  # fmt: skip
    axes = (difference.lengths, difference.depths)
    return _map("difference", difference.kv, replace(difference, model="").title, *axes, make, table, difference.broken)


def _map(
    kind: str,
    kv: str,
    title: str,
    lengths: Sequence[int],
    depths: Sequence[float],
    make: Callable[[float, float, float, float, int, float], Square | None],
    table: list[list[str]],
    broken: bool,
) -> Map:
    plot_width = min(760.0, max(440.0, 58.0 * len(lengths)))
    plot_height = min(620.0, 32.0 * max(4, len(depths)))
    across = _scaled(edges([math.log2(length) for length in lengths]) if lengths else [], _LEFT, plot_width)
    down = _scaled(edges(depths) if depths else [], _TOP, plot_height)
    squares = [
        made
        for row, depth in enumerate(depths)
        for column, length in enumerate(lengths)
        if (made := _fitted(make, across, down, column, row, length, depth)) is not None
    ]
    columns = {length: (across[i] + across[i + 1]) / 2 for i, length in enumerate(lengths)}
    lines = {depth: (down[i] + down[i + 1]) / 2 for i, depth in enumerate(depths)}
    return Map(
        kind=kind,
        kv=kv,
        title=title,
        width=_LEFT + plot_width + _RIGHT,
        height=_TOP + plot_height + _BOTTOM,
        plot_height=plot_height,
        squares=squares,
        columns=[Label(_px(columns[int(length)]), length_label(int(length))) for length in thinned(lengths)],
        lines=[Label(_px(lines[depth]), f"{depth * 100:.3g}") for depth in thinned(depths)],
        head=["depth", *(f"{length_label(length)} tokens" for length in lengths)],
        table=table,
        broken=broken,
    )


def _fitted(
    make: Callable[[float, float, float, float, int, float], Square | None],
    across: list[float],
    down: list[float],
    column: int,
    row: int,
    length: int,
    depth: float,
) -> Square | None:
    gap = 1.5
    x, y = across[column] + gap / 2, down[row] + gap / 2
    width, height = across[column + 1] - across[column] - gap, down[row + 1] - down[row] - gap
    made = make(_px(x), _px(y), _px(max(1.0, width)), _px(max(1.0, height)), length, depth)
    if made is not None and (width < 7 * len(made.text) + 4 or height < 12):
        return replace(made, text="")
    return made


def _scaled(places: Sequence[float], start: float, size: float) -> list[float]:
    if not places:
        return []
    span = places[-1] - places[0]
    return [start + (place - places[0]) / span * size for place in places]


def _px(value: float) -> float:
    return round(value, 1)


def _depth(depth: float) -> str:
    return f"{depth * 100:.4g} %"


def _outcomes(cell: CellSummary) -> str:
    counts = (("failed", cell.failed), ("truncated", cell.truncated), ("refused", cell.refused))
    return ", ".join(f"{count} {name}" for name, count in counts if count)


def _cell_words(cell: CellSummary, length: int, depth: float) -> str:
    real = "" if cell.depth_real is None else f" (built at {cell.depth_real * 100:.2f} %)"
    words = [f"{length:,} tokens, depth {_depth(depth)}{real}", f"{cell.hits} of {cell.answered} answered right"]
    if cell.share is not None:
        words[1] += f" = {percent(cell.share)}, 95 % {percent(cell.interval.low)}–{percent(cell.interval.high)}"
    if cell.mean_logprob is not None:
        words.append(f"mean log-probability of the answer {cell.mean_logprob:.3f}")
    return "\n".join([*words, *filter(None, [_outcomes(cell)])])


def _pair_words(cell: PairSummary, length: int, depth: float) -> str:
    return (
        f"{length:,} tokens, depth {_depth(depth)}\n{points(cell.delta)} points over {cell.pairs} pairs: "
        f"{cell.lost} lost, {cell.gained} gained"
    )


def _grid_table(grid: Grid) -> list[list[str]]:
    def words(cell: CellSummary | None) -> str:
        if cell is None:
            return "not run"
        counts = f"{cell.hits}/{cell.answered}" if cell.answered else ""
        return ", ".join(filter(None, [counts, _outcomes(cell)]))

    return [[_depth(y), *(words(grid.cells.get((x, y))) for x in grid.lengths)] for y in grid.depths]


def score_chart(grids: Sequence[Grid]) -> Chart | None:
    """Accuracy against length with Wilson bands; None when nothing was answered."""
    lengths = sorted({length for grid in grids for length in grid.lengths if grid.at_length(length).answered})
    if not lengths:
        return None
    x, y = _x_scale(lengths), _linear(_CHART_HEIGHT)
    series, table = [], []
    for index, grid in enumerate(grids):
        cells = [(length, cell) for length in lengths if (cell := grid.at_length(length)).answered]
        line = [(x(length), y(cell.share or 0.0)) for length, cell in cells]
        band = [(x(length), y(cell.interval.high)) for length, cell in cells]
        band += [(x(length), y(cell.interval.low)) for length, cell in reversed(cells)]
        shape = SHAPES[index % len(SHAPES)]
        marks = [
            Mark(mark_path(shape, *place, 4.5), False, f"{grid.kv}\n{_column_words(length, cell)}")
            for place, (length, cell) in zip(line, cells, strict=True)
        ]
        name = f"{grid.kv} (broken)" if grid.broken else grid.kv
        if len(cells) == 1:  # one length has no band: its interval becomes a bar
            (left, top), (right, bottom) = band
            band = [(left - 6, top), (right + 6, top), (right + 6, bottom), (left - 6, bottom)]
        outline = "" if grid.broken else _polyline(band)
        dash = "5 4" if grid.broken else ""
        series.append(Series(name, series_color(index), shape, _polyline(line), dash, outline, marks))
        known = dict(cells)
        table.append([name, *(_share_words(known.get(length)) for length in lengths)])
    ticks = [Label(_px(y(share / 5)), f"{share * 20} %") for share in range(6)]
    return _chart("Accuracy against length", "accuracy, all depths", lengths, ticks, series, table)


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
    x, y = _x_scale(lengths), _log(low, high)
    longest = max((members for _, members in found), key=len)
    series = [
        Series("16-bit reference", "var(--ink)", "", _polyline(_curve(longest, "reference_bytes", x, y)), "7 4"),
        Series("naive MHA formula", "var(--muted)", "", _polyline(_curve(longest, "naive_mha_bytes", x, y)), "2 4"),
    ]
    table = []
    for index, (name, members) in enumerate(found):
        shape = SHAPES[index % len(SHAPES)]
        formula = _polyline(_curve(members, "formula_bytes", x, y))
        marks = _memory_marks(name, members, shape, x, y)
        series.append(Series(name, series_color(index), shape, formula, marks=marks))
        known = {point.length: point for point in members}
        table.append([name, *(_memory_words(known.get(length)) for length in lengths)])
    step = max(1, (high - low) // 7)
    ticks = [Label(_px(y(2.0**power)), human_bytes(2.0**power)) for power in range(low, high + 1, step)]
    series = [item for item in series if item.line or item.marks]
    return _chart("KV memory against length", "KV cache", lengths, ticks, series, table)


def _memory_marks(
    name: str,
    members: Sequence[MemoryPoint],
    shape: str,
    x: Callable[[float], float],
    y: Callable[[float], float],
) -> list[Mark]:
    marks = []
    for point in members:
        words = f"{name}, {point.length:,} tokens\n{_memory_words(point)}"
        for size, radius, hollow in ((point.allocated_bytes, 7.5, True), (point.logical_bytes, 4.5, False)):
            if size:
                marks.append(Mark(mark_path(shape, x(point.length), y(size), radius), hollow, words))
    return marks


def _curve(
    members: Sequence[MemoryPoint], what: str, x: Callable[[float], float], y: Callable[[float], float]
) -> list[tuple[float, float]]:
    return [(x(point.length), y(size)) for point in members if (size := getattr(point, what))]


def _chart(
    title: str,
    y_title: str,
    lengths: Sequence[int],
    y_ticks: list[Label],
    series: list[Series],
    table: list[list[str]],
) -> Chart:
    x = _x_scale(lengths)
    return Chart(
        title=title,
        width=_CHART_LEFT + _CHART_WIDTH + 16,
        height=_TOP + _CHART_HEIGHT + _BOTTOM,
        left=_CHART_LEFT,
        plot_height=_CHART_HEIGHT,
        x_title="length (tokens)",
        y_title=y_title,
        x_ticks=[Label(_px(x(length)), length_label(int(length))) for length in thinned(lengths)],
        y_ticks=y_ticks,
        series=series,
        head=["KV setting", *(f"{length_label(length)} tokens" for length in lengths)],
        table=table,
    )


def _x_scale(lengths: Sequence[int]) -> Callable[[float], float]:
    low, high = math.log2(lengths[0]), math.log2(lengths[-1])
    inset = 24
    if low == high:
        return lambda _: _CHART_LEFT + _CHART_WIDTH / 2
    return lambda length: _CHART_LEFT + inset + (math.log2(length) - low) / (high - low) * (_CHART_WIDTH - 2 * inset)


def _linear(height: float) -> Callable[[float], float]:
    return lambda share: _TOP + 6 + (1 - share) * (height - 12)


def _log(low: float, high: float) -> Callable[[float], float]:
    return lambda size: _TOP + (high - math.log2(size)) / (high - low) * _CHART_HEIGHT


def _polyline(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_px(x)},{_px(y)}" for x, y in places)


def mark_path(shape: str, x: float, y: float, radius: float) -> str:
    """An SVG path of a point's shape around its center."""
    corners = {
        "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        "diamond": [(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)],
        "triangle": [(0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
    }
    if shape not in corners:
        around = f"a{radius},{radius} 0 1,0"
        return f"M{_px(x - radius)},{_px(y)}{around} {2 * radius},0{around} {-2 * radius},0z"
    return "M" + "L".join(f"{_px(x + a * radius)},{_px(y + b * radius)}" for a, b in corners[shape]) + "z"


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
