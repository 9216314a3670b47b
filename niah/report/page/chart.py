"""What the report's own curves are made of: scales in pixels, marks, lines and bands that a template writes down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from niah.grid import length_label
from niah.report.data.geometry import thinned
from niah.report.page.svg import Label

Scale = Callable[[float], float]
Point = tuple[float, float]

LEFT, TOP, RIGHT, BOTTOM = 76, 8, 14, 44
PLOT_WIDTH, PLOT_HEIGHT = 470, 262
INSET = 24
SHAPES = ("circle", "square", "diamond", "triangle")
_CORNERS = {
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "diamond": [(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
    "triangle": [(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A point: a path in pixels with its tooltip, perhaps with an interval through it and a name beside it."""

    path: str
    hollow: bool
    tooltip: str
    whisker: str = ""
    name: str = ""
    name_x: float = 0.0
    name_y: float = 0.0
    name_anchor: str = "start"


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: a line, perhaps a band around it, and its points. Without a shape it is a line of reference."""

    name: str
    color: str
    shape: str
    line: str
    dash: str = ""
    band: str = ""
    marks: list[Mark] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves in pixels, and the same as a table."""

    title: str
    note: str
    x_title: str
    y_title: str
    x_ticks: list[Label]
    y_ticks: list[Label]
    series: list[Series]
    head: list[str]
    table: list[list[str]]

    @property
    def left(self) -> int:
        return LEFT

    @property
    def width(self) -> int:
        return LEFT + PLOT_WIDTH + RIGHT

    @property
    def plot_height(self) -> int:
        return PLOT_HEIGHT

    @property
    def height(self) -> int:
        return TOP + PLOT_HEIGHT + BOTTOM


def across_lengths(lengths: Sequence[int]) -> Scale:
    """Log 2 of tokens across the plot; a single length stands in the middle."""
    return across_log(min(lengths), max(lengths))


def across_log(low: float, high: float) -> Scale:
    """Log 2 of positive values from ``low`` to ``high`` across the plot."""
    start, end = math.log2(low), math.log2(high)
    if start == end:
        return lambda _: LEFT + PLOT_WIDTH / 2
    return lambda value: LEFT + INSET + (math.log2(value) - start) / (end - start) * (PLOT_WIDTH - 2 * INSET)


def across(low: float, high: float) -> Scale:
    """Values from ``low`` to ``high`` across the plot, linear."""
    if low == high:
        return lambda _: LEFT + PLOT_WIDTH / 2
    return lambda value: LEFT + INSET + (value - low) / (high - low) * (PLOT_WIDTH - 2 * INSET)


def down(low: float, high: float) -> Scale:
    """Values up the plot, linear: ``high`` is at the top."""
    span = high - low or 1.0
    return lambda value: TOP + 6 + (high - value) / span * (PLOT_HEIGHT - 12)


def down_log(low: float, high: float) -> Scale:
    """Positive values up the plot by their logarithm: ``high`` is at the top."""
    start, end = math.log2(low), math.log2(high)
    return lambda value: TOP + (end - math.log2(value)) / ((end - start) or 1.0) * PLOT_HEIGHT


def length_ticks(lengths: Sequence[int], x: Scale) -> list[Label]:
    """Labels of token counts, thinned out where there are many."""
    return [Label(px(x(length)), length_label(int(length))) for length in thinned(lengths)]


def steps(low: float, high: float, most: int = 6) -> list[float]:
    """Round values that cover ``low`` to ``high``: multiples of 1, 2 or 5 times a power of ten, both ends included."""
    rough = max((high - low) / most, 1e-12)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]


def polyline(places: Sequence[Point]) -> str:
    """Points as an SVG list."""
    return " ".join(f"{px(x)},{px(y)}" for x, y in places)


def band(upper: Sequence[Point], lower: Sequence[Point]) -> str:
    """The area between two curves; a single point becomes a narrow bar."""
    around = [*upper, *reversed(lower)]
    if len(upper) == 1:
        (left, top), (right, bottom) = around
        around = [(left - 6, top), (right + 6, top), (right + 6, bottom), (left - 6, bottom)]
    return polyline(around)


def px(value: float) -> float:
    """A place rounded to a tenth of a pixel."""
    return round(value, 1)


def mark_path(shape: str, x: float, y: float, radius: float) -> str:
    """An SVG path of a point's shape around its center."""
    if shape not in _CORNERS:
        turn = f"a{radius},{radius} 0 1,0"
        return f"M{px(x - radius)},{px(y)}{turn} {2 * radius},0{turn} {-2 * radius},0z"
    return "M" + "L".join(f"{px(x + a * radius)},{px(y + b * radius)}" for a, b in _CORNERS[shape]) + "z"
