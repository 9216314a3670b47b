"""Difference maps: the same cells under two settings, pair by pair."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from niah.report.data.difference import Difference, points
from niah.report.data.geometry import square
from niah.report.data.grid import BROKEN_LABEL
from niah.report.figures.drawing import draw_mesh, grid_axes, pale, save_figure, stamp, write_number
from niah.report.palette import DIFFERENCE_LIMIT, WORSE_TO_BETTER, difference_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def difference_map(difference: Difference, ax: Axes | None = None) -> Axes:
    """Draw new minus reference in points; orange is worse, purple is better, full color from 50 points on.

    Squares whose change may be chance (Holm over all squares) are paled.

    Raises:
        MissingDependency: matplotlib is not installed.
        ValueError: the settings have no pair.
    """
    lengths, depths = difference.lengths, difference.depths
    ax = ax if ax is not None else grid_axes(lengths, depths)
    from matplotlib.colors import LinearSegmentedColormap

    cells = difference.cells
    deltas = [[cells[x, y].delta if (x, y) in cells else math.nan for x in lengths] for y in depths]
    cmap = LinearSegmentedColormap.from_list("niah-difference", WORSE_TO_BETTER)
    limits = (-DIFFERENCE_LIMIT, DIFFERENCE_LIMIT)
    label, tick = "difference (points)", lambda delta, _: points(delta)
    draw_mesh(ax, lengths, depths, deltas, cmap=cmap, limits=limits, label=label, tick=tick)
    for (length, depth), cell in cells.items():
        box = square(lengths, depths, length, depth)
        if not cell.significant:
            pale(ax, box)
        ink = difference_color(cell.delta).ink if cell.significant else "#555555"
        write_number(ax, box, points(cell.delta), ink)
    ax.set_title(textwrap.fill(difference.title, 72), fontsize=10, parse_math=False)
    if difference.broken:
        stamp(ax, BROKEN_LABEL)
    return ax


def save_difference(difference: Difference, path: Path) -> Path:
    """Write a difference map, for instance ``compare-int8.png``; equal pairs give equal bytes.

    Raises:
        MissingDependency: matplotlib is not installed.
        StoreError: the file cannot be written.
        ValueError: the settings have no pair.
    """
    return save_figure(difference_map(difference).figure, path)
