"""Maps of the expected answer's log-probability: they show damage where accuracy is still full."""

from __future__ import annotations

import math

from niah.report.data.difference import Difference
from niah.report.data.grid import Grid
from niah.report.page.svg import Map, Square, build_map, depth_words
from niah.report.palette import RGB, Palette, blend, difference_color, stops

# full colors of the fixed scales, natural log: a chance of 1 in 150, and a change by a factor of 2.7
LOWEST = -5.0
CHANGE_LIMIT = 1.0


def logprob_map(grid: Grid, palette: Palette) -> Map | None:
    """Mean log-probability of the expected answer, from -5 or less to 0; None when no answer has one."""
    cells = {place: cell.mean_logprob for place, cell in grid.cells.items() if cell.mean_logprob is not None}
    if not cells:
        return None

    def make(x: float, y: float, width: float, height: float, length: int, depth: float) -> Square | None:
        value = cells.get((length, depth))
        if value is None:
            return None
        color = blend(stops(palette), 1 - value / LOWEST)
        words = f"{length:,} tokens, depth {depth_words(depth)}\nmean log-probability {value:z.3f}"
        return _square((x, y, width, height), color, number(value), words, length, depth)

    table = [[depth_words(y), *(_words(cells.get((x, y))) for x in grid.lengths)] for y in grid.depths]
    title = f"{grid.kv} · mean"
    return build_map("log-probability", grid.kv, title, grid.lengths, grid.depths, make, table, grid.broken)


def logprob_change_map(difference: Difference) -> Map | None:
    """Mean change against the reference over the same pairs, full color from one nat on; None when nothing is known."""
    found = {at: cell.logprob_delta for at, cell in difference.cells.items() if cell.logprob_delta is not None}
    if not found:
        return None

    def make(x: float, y: float, width: float, height: float, length: int, depth: float) -> Square | None:
        value = found.get((length, depth))
        if value is None:
            return None
        color = difference_color(value / CHANGE_LIMIT / 2)
        words = f"{length:,} tokens, depth {depth_words(depth)}\n{signed(value)} nats: the right answer is "
        words += f"{math.exp(min(abs(value), 50.0)):.3g} times {'more' if value > 0 else 'less'} likely"
        return _square((x, y, width, height), color, signed(value, 1), words, length, depth)

    axes = (difference.lengths, difference.depths)
    table = [[depth_words(y), *(_words(found.get((x, y))) for x in axes[0])] for y in axes[1]]
    title = f"{difference.kv} minus {difference.reference}"
    return build_map("change of log-probability", difference.kv, title, *axes, make, table, difference.broken)


def _square(
    box: tuple[float, float, float, float], color: RGB, text: str, words: str, length: int, depth: float
) -> Square:
    x, y, width, height = box
    return Square(x, y, width, height, color.hex, color.ink, text, words, length, depth)


def number(value: float) -> str:
    """A log-probability as short as a square allows."""
    return f"{value:.1f}".replace("-", "−") if round(value, 1) else "0"


def signed(value: float, digits: int = 2) -> str:
    """A change with its sign; no change is ``0``."""
    rounded = round(value, digits)
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else "0"


def _words(value: float | None) -> str:
    return "not known" if value is None else f"{value:z.3f}".replace("-", "−")
