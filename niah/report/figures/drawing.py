"""Strokes that all matplotlib figures are made of: a figure without global state, a mesh of squares, marks in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from niah.errors import MissingDependency
from niah.grid import length_label
from niah.redact import printable
from niah.report.data.geometry import Box, _x_edges, _y_edges, thinned
from niah.report.palette import EMPTY, PALING
from niah.store.folder import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(width_inches: float, height_inches: float) -> Figure:
    """A figure with its own Agg canvas: no global state, works in threads and without a display.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as err:
        raise MissingDependency("matplotlib", "report", "Drawing figures") from err
    figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: Path) -> Path:
    """Write a figure in the format of its ending, without dates or version names.

    Raises:
        StoreError: the file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.text import Text

    metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
    for text in figure.findobj(Text):
        # names come from files: a control character has no glyph, and no place in an SVG
        text.set_text(printable(text.get_text(), lines=True))
    drawn = BytesIO()
    with rc_context({"svg.hashsalt": "niah"}):
        figure.savefig(drawn, format=path.suffix.removeprefix("."), dpi=160, metadata=metadata, facecolor="white")
    # in one step: a link of that name in somebody's folder is replaced, not followed
    write_atomic(path, drawn.getvalue())
    return path


def grid_axes(lengths: Sequence[int], depths: Sequence[float]) -> Axes:
    """Axes on a new figure that is large enough for a number in every square, up to a page."""
    width = min(14.0, 2.6 + 0.62 * max(4, len(lengths)))
    height = min(11.0, 1.7 + 0.33 * max(4, len(depths)))
    return new_figure(width, height).add_subplot()


def draw_mesh(
    ax: Axes,
    lengths: Sequence[int],
    depths: Sequence[float],
    values: list[list[float]],
    *,
    cmap: Any,
    limits: tuple[float, float],
    label: str,
    tick: Callable[[float, object], str],
) -> None:
    """Color the squares; NaN is left blank. Sets both axes and the color bar.

    Args:
        values: one row a depth, one column a length.
        label, tick: name and numbers of the color bar.

    Raises:
        ValueError: there are no squares.
    """
    import numpy as np
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    if not lengths or not depths:
        raise ValueError("a heatmap needs at least one length and one depth")
    ax.set_xscale("log", base=2)
    mesh = ax.pcolormesh(
        np.array(_x_edges(lengths)),
        np.array(_y_edges(depths)),
        np.ma.masked_invalid(np.array(values, dtype=float)),
        cmap=cmap,
        vmin=limits[0],
        vmax=limits[1],
        edgecolors="white",
        linewidth=0.8,
    )
    ax.xaxis.set_major_locator(FixedLocator(thinned(lengths)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda tokens, _: length_label(round(tokens))))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_locator(FixedLocator([100 * depth for depth in thinned(depths)]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda percent, _: f"{percent:.3g}"))
    ax.invert_yaxis()
    ax.set_xlabel("length (tokens)")
    ax.set_ylabel("depth (%)")
    ax.tick_params(length=0, labelsize=8)
    for spine in ax.spines.values():
        spine.set_visible(False)
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02, aspect=30, format=FuncFormatter(tick))
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=8, length=0)
    bar.outline.set_visible(False)


def size_inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes as they stand before the layout is made."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def write_number(ax: Axes, box: Box, text: str, color: str) -> None:
    """A number in its square where the square is large enough for it."""
    span_x = abs(math.log2(ax.get_xlim()[1] / ax.get_xlim()[0]))
    span_y = abs(ax.get_ylim()[1] - ax.get_ylim()[0])
    axes_width, axes_height = size_inches(ax)
    width = math.log2(box.right / box.left) / span_x * axes_width
    height = abs(box.bottom - box.top) / span_y * axes_height
    if width >= 0.075 * len(text) + 0.06 and height >= 0.13:
        across, down = box.at(0.5, 0.5)
        ax.text(across, down, text, ha="center", va="center", fontsize=7.5 if height > 0.17 else 6, color=color)


def legend_below(ax: Axes, handles: Sequence[Any]) -> None:
    """A legend under the axes, clear of the axis label; nothing without handles."""
    if handles:
        place = (0.0, -0.5 / size_inches(ax)[1])
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=place, ncols=4, frameon=False, fontsize=8)


def stamp(ax: Axes, text: str) -> None:
    """A label across the map that nobody can miss."""
    look = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": "#a40000", "linewidth": 1.5}
    ax.text(
        0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", fontsize=13, fontweight="bold",
        color="#a40000", bbox=look, zorder=9,
    )  # fmt: skip


def fill(ax: Axes, box: Box, start: float, hatch: str) -> None:
    """Cover a square from ``start`` (0–1 from the left) to its right border, hatched when ``hatch`` says so."""
    from matplotlib.patches import Rectangle

    left, top = box.at(start, 0.0)
    size = (box.right - left, box.bottom - top)
    ax.add_patch(
        Rectangle((left, top), *size, facecolor=EMPTY, edgecolor="#777777", linewidth=0.0, hatch=hatch or None)
    )


def pale(ax: Axes, box: Box) -> None:
    """Take most of the color out of a square."""
    from matplotlib.patches import Rectangle

    size = (box.right - box.left, box.bottom - box.top)
    ax.add_patch(Rectangle((box.left, box.top), *size, facecolor="white", alpha=PALING, linewidth=0))


def cross(ax: Axes, box: Box, across: tuple[float, float], down: tuple[float, float], ink: str) -> None:
    """Two strokes between the given shares of a square's width and height."""
    for ends in (down, down[::-1]):
        (x0, y0), (x1, y1) = box.at(across[0], ends[0]), box.at(across[1], ends[1])
        ax.plot([x0, x1], [y0, y1], color=ink, linewidth=1.0)
