"""Depth by length: one KV setting as a grid of shares, drawn as a heatmap with matplotlib."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from niah.report.data.geometry import Box, square
from niah.report.data.grid import BROKEN_LABEL, FEW_TRIALS, OFF_LABEL, CellSummary, Grid
from niah.report.figures.drawing import (
    cross,
    draw_mesh,
    fill,
    grid_axes,
    legend_below,
    save_figure,
    stamp,
    write_number,
)
from niah.report.palette import EMPTY, Palette, share_color, stops

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # noqa: PLC0414 - for the public interface, which imports no plotting library


def heatmap(grid: Grid, ax: Axes | None = None, palette: Palette = "cividis") -> Axes:
    """Draw one setting: color is accuracy on a fixed scale from 0 to 1, shape is state.

    Hatched is failed, crossed is truncated, a bar is refused, a dot means fewer than five answers, a diamond a needle
    that does not lie at its depth, blank is not run.
    The x axis is tokens (log 2), the y axis is depth in percent with 0 at the top.

    Args:
        ax: where to draw; a new figure without global state when None.

    Raises:
        MissingDependency: matplotlib is not installed.
        ValueError: the grid has no squares.
    """
    ax = ax if ax is not None else grid_axes(grid.lengths, grid.depths)
    from matplotlib.colors import LinearSegmentedColormap

    shares = [[_share(grid, length, depth) for length in grid.lengths] for depth in grid.depths]
    cmap = LinearSegmentedColormap.from_list(f"niah-{palette}", stops(palette))
    draw_mesh(
        ax,
        grid.lengths,
        grid.depths,
        shares,
        cmap=cmap,
        limits=(0.0, 1.0),
        label="accuracy",
        tick=lambda share, _: f"{share * 100:.0f} %",
    )
    labels = {100 * depth: grid.depth_label(depth) for depth in grid.depths}
    ax.yaxis.set_major_formatter(lambda percent, _: labels.get(percent, f"{percent:.3g}"))
    states: set[str] = set()
    for (length, depth), cell in grid.cells.items():
        box = square(grid.lengths, grid.depths, length, depth)
        states |= _draw_state(ax, box, cell, palette)
        if grid.off_depth(length, depth) is not None:
            across, down = box.at(0.88, 0.2)
            ink = "#444444" if cell.share is None else share_color(cell.share, palette).ink
            ax.plot([across], [down], marker="d", markersize=2.6, color=ink, linestyle="none")
            states.add("off")
        if cell.share is not None:
            write_number(ax, box, f"{cell.share * 100:.0f}", share_color(cell.share, palette).ink)
    _legend(ax, states)
    ax.set_title(textwrap.fill(grid.title, 72), fontsize=10, parse_math=False)
    if grid.broken:
        stamp(ax, BROKEN_LABEL)
    return ax


def save_heatmap(grid: Grid, path_stem: Path, palette: Palette = "cividis") -> list[Path]:
    """Write ``<stem>.png`` and ``<stem>.svg``; equal grids give equal bytes. Returns both paths.

    Raises:
        MissingDependency: matplotlib is not installed.
        StoreError: a file cannot be written.
    """
    figure = heatmap(grid, palette=palette).figure
    return [save_figure(figure, Path(f"{path_stem}{ending}")) for ending in (".png", ".svg")]


def _share(grid: Grid, length: int, depth: float) -> float:
    cell = grid.cells.get((length, depth))
    return math.nan if cell is None or cell.share is None else cell.share


def _draw_state(ax: Axes, box: Box, cell: CellSummary, palette: Palette) -> set[str]:
    """Marks for what is not a plain answer: over the whole square when nothing was answered, else in its corners."""
    states: set[str] = set()
    ink = "#444444" if cell.share is None else share_color(cell.share, palette).ink
    if cell.share is None:
        fill(ax, box, 0.0, "////" if cell.failed else "")
        states |= {"failed"} if cell.failed else set()
    elif cell.failed:
        fill(ax, box, 0.84, "//////")
        states.add("failed")
    if cell.truncated:
        corners = ((0.0, 1.0), (0.0, 1.0)) if cell.share is None else ((0.06, 0.18), (0.1, 0.34))
        cross(ax, box, corners[0], corners[1], ink)
        states.add("truncated")
    if cell.refused:
        start, end = (
            (box.at(0.3, 0.5), box.at(0.7, 0.5)) if cell.share is None else (box.at(0.4, 0.9), box.at(0.6, 0.9))
        )
        ax.plot([start[0], end[0]], [start[1], end[1]], color=ink, linewidth=1.6, solid_capstyle="butt")
        states.add("refused")
    if cell.few:
        across, down = box.at(0.12, 0.8)
        ax.plot([across], [down], marker="o", markersize=2.2, color=ink, linestyle="none")
        states.add("few")
    return states


def _legend(ax: Axes, states: set[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: dict[str, Any] = {
        "failed": Patch(facecolor=EMPTY, edgecolor="#777777", hatch="//////", linewidth=0, label="failed"),
        "truncated": Line2D([], [], color="#444444", marker="x", linestyle="none", label="truncated"),
        "refused": Line2D([], [], color="#444444", marker="_", linestyle="none", label="refused"),
        "few": Line2D([], [], color="#444444", marker=".", linestyle="none", label=f"fewer than {FEW_TRIALS} answers"),
        "off": Line2D([], [], color="#444444", marker="d", linestyle="none", markersize=4, label=OFF_LABEL),
    }
    legend_below(ax, [handle for state, handle in keys.items() if state in states])
