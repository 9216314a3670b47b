"""Geometry of the report's own maps: squares as plain numbers that the templates write down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from niah.grid import counted, length_label
from niah.report.data.difference import Difference, PairSummary, points
from niah.report.data.geometry import edges, thinned
from niah.report.data.grid import CellSummary, Grid
from niah.report.data.summary import percent
from niah.report.palette import EMPTY, PALING, Palette, blend, difference_color, share_color
from niah.report.text.comparison import p_text

_LEFT, _TOP, _BOTTOM, _RIGHT = 46, 6, 42, 8


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
        off: the needles do not lie at this depth.
        pale: the difference shown may be chance.
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
    off: bool = False
    pale: bool = False


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
            off=grid.off_depth(length, depth) is not None,
        )  # fmt: skip

    # the page says the model and the task once, above all maps
    title = f"{grid.kv} · n = {grid.total().answered:,}"
    axes = (grid.lengths, grid.depths)
    return build_map("accuracy", grid.kv, title, *axes, make, _grid_table(grid), grid.broken, grid.depth_label)


def difference_picture(difference: Difference) -> Map:
    """A difference map; full color from 50 points on."""

    def make(x: float, y: float, width: float, height: float, length: int, depth: float) -> Square | None:
        cell = difference.cells.get((length, depth))
        if cell is None:
            return None
        color, tooltip = difference_color(cell.delta), _pair_words(cell, length, depth)
        pale = not cell.significant
        # mixed here and not made transparent: on a dark page a transparent white would be the brightest of all
        fill, ink = (blend([color.hex, "#ffffff"], PALING).hex, "#4a4f57") if pale else (color.hex, color.ink)
        return Square(x, y, width, height, fill, ink, points(cell.delta), tooltip, length, depth, pale=pale)

    cells = difference.cells
    table = [
        [depth_words(y), *(_pair_table_words(cells.get((x, y))) for x in difference.lengths)] for y in difference.depths
    ]
    axes = (difference.lengths, difference.depths)
    title = replace(difference, model="").title
    return build_map("difference", difference.kv, title, *axes, make, table, difference.broken)


def build_map(
    kind: str,
    kv: str,
    title: str,
    lengths: Sequence[int],
    depths: Sequence[float],
    make: Callable[[float, float, float, float, int, float], Square | None],
    table: list[list[str]],
    broken: bool,
    depth_label: Callable[[float], str] = lambda depth: f"{depth * 100:.3g}",
) -> Map:
    """Lay out a map: ``make`` gives the square at a place (pixels), a length (tokens) and a depth; None is a blank."""
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
        lines=[Label(_px(lines[depth]), depth_label(depth)) for depth in thinned(depths)],
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


def depth_words(depth: float) -> str:
    """A depth in percent."""
    return f"{depth * 100:.4g} %"


def _outcomes(cell: CellSummary) -> str:
    counts = (("failed", cell.failed), ("truncated", cell.truncated), ("refused", cell.refused))
    return ", ".join(f"{count} {name}" for name, count in counts if count)


def _cell_words(cell: CellSummary, length: int, depth: float) -> str:
    real = "" if cell.depth_real is None else f" (built at {cell.depth_real * 100:.2f} %)"
    words = [f"{length:,} tokens, depth {depth_words(depth)}{real}", f"{cell.hits} of {cell.answered} answered right"]
    if cell.share is not None:
        words[1] += f" = {percent(cell.share)}, 95 % {percent(cell.interval.low)}–{percent(cell.interval.high)}"
    if cell.mean_logprob is not None:
        words.append(f"mean log-probability of the answer {cell.mean_logprob:z.3f}")
    return "\n".join([*words, *filter(None, [_outcomes(cell)])])


def _pair_words(cell: PairSummary, length: int, depth: float) -> str:
    words = (
        f"{length:,} tokens, depth {depth_words(depth)}\n{points(cell.delta)} points over "
        f"{counted(cell.pairs, 'pair')}: {cell.lost} lost, {cell.gained} gained"
    )
    if cell.interval is not None:
        words += f"\n95 % {points(cell.interval.low)} to {points(cell.interval.high)}"
    if cell.significant:
        return words
    return f"{words}\nmay be chance" + ("" if cell.p_holm is None else f": p = {p_text(cell.p_holm)} over all squares")


def _pair_table_words(cell: PairSummary | None) -> str:
    if cell is None:
        return "no pair"
    return f"{points(cell.delta)} of {cell.pairs}{' (beyond chance)' if cell.significant else ''}"


def _grid_table(grid: Grid) -> list[list[str]]:
    def words(length: int, depth: float) -> str:
        cell = grid.cells.get((length, depth))
        if cell is None:
            return "not run"
        counts = f"{cell.hits}/{cell.answered}" if cell.answered else ""
        real = grid.off_depth(length, depth)
        place = "" if real is None else f"needles at {depth_words(real)}"
        return ", ".join(filter(None, [counts, _outcomes(cell), place]))

    return [[depth_words(y), *(words(x, y) for x in grid.lengths)] for y in grid.depths]
