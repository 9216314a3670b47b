"""Curves over length, drawn with matplotlib: KV memory against its formula, and accuracy with its bands."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from niah.grid import length_label
from niah.report.data.geometry import thinned
from niah.report.data.grid import Grid, record_grid
from niah.report.data.summary import MemoryPoint, human_bytes, memory_points
from niah.report.figures.drawing import new_figure, save_figure
from niah.report.palette import series_color
from niah.store.read import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^vP"


def memory_figure(record: RunRecord) -> Figure | None:
    """KV bytes against length, both on log 2 scales; None when no row knows any bytes.

    Filled points are logical bytes, hollow ones what was really held; the line through them is the formula. Dashed
    grey is a 16-bit cache of the same model, dotted grey the textbook formula that ignores grouped-query attention.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    series = {kv: memory_points(row for row in record.rows if row.kv == kv) for kv in record.kvs()}
    series = {kv: found for kv, found in series.items() if found}
    if not series:
        return None
    figure = new_figure(7.2, 4.6)
    ax = figure.add_subplot()
    longest = max(series.values(), key=len)
    _bytes_line(ax, longest, "naive_mha_bytes", color="#8a8a8a", linestyle=":", label="naive MHA formula")
    _bytes_line(ax, longest, "reference_bytes", color="#555555", linestyle="--", label="16-bit reference")
    for index, (kv, found) in enumerate(series.items()):
        color, marker = series_color(index), MARKERS[index % len(MARKERS)]
        name = f"{kv} (broken)" if record.broken(kv) else kv
        measured = any(point.logical_bytes for point in found)
        _bytes_line(ax, found, "formula_bytes", color=color, label="_" if measured else f"{name} formula")
        _bytes_line(ax, found, "allocated_bytes", color=color, marker=marker, hollow=True, label="_")
        _bytes_line(ax, found, "logical_bytes", color=color, marker=marker, label=name)
    _length_axis(ax, sorted({point.length for found in series.values() for point in found}))
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter(lambda size, _: human_bytes(size))
    ax.set_ylabel("KV cache")
    ax.set_title(_title(record, "KV memory against length"), fontsize=10, parse_math=False)
    _legend(ax, "points: measured, hollow: allocated,\nlines: formula")
    return figure


def score_figure(record: RunRecord) -> Figure | None:
    """Accuracy against length with 95 % bands, one line a setting; None when nothing was answered.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    grids = [grid for kv in record.kvs() if (grid := record_grid(record, kv)).total().answered]
    if not grids:
        return None
    figure = new_figure(7.2, 4.2)
    ax = figure.add_subplot()
    for index, grid in enumerate(grids):
        _score_line(ax, grid, index)
    _length_axis(ax, sorted({length for grid in grids for length in grid.lengths}))
    ax.set_ylim(-0.03, 1.03)
    ax.yaxis.set_major_formatter(lambda share, _: f"{share * 100:.0f} %")
    ax.set_ylabel("accuracy, all depths")
    ax.set_title(_title(record, "accuracy against length"), fontsize=10, parse_math=False)
    _legend(ax, "bands: 95 % over texts")
    return figure


def save_memory(record: RunRecord, path: Path) -> Path | None:
    """Write the memory figure, for instance ``memory.png``; None when there is nothing to draw.

    Raises:
        MissingDependency: matplotlib is not installed.
        StoreError: the file cannot be written.
    """
    figure = memory_figure(record)
    return save_figure(figure, path) if figure is not None else None


def save_score(record: RunRecord, path: Path) -> Path | None:
    """Write the accuracy figure; None when there is nothing to draw. Raises as ``save_memory``."""
    figure = score_figure(record)
    return save_figure(figure, path) if figure is not None else None


def _score_line(ax: Axes, grid: Grid, index: int) -> None:
    cells = [(length, cell) for length in grid.lengths if (cell := grid.at_length(length)).answered]
    xs = [length for length, _ in cells]
    color, marker = series_color(index), MARKERS[index % len(MARKERS)]
    # a broken setting is drawn dashed and without a band: its numbers are no measurement of the setting
    style = "--" if grid.broken else "-"
    name = f"{grid.kv} (broken)" if grid.broken else grid.kv
    ax.plot(xs, [cell.share or 0.0 for _, cell in cells], style, marker=marker, color=color, markersize=5, label=name)
    if not grid.broken:
        low, high = [cell.interval.low for _, cell in cells], [cell.interval.high for _, cell in cells]
        ax.fill_between(xs, low, high, color=color, alpha=0.15, linewidth=0)
        if len(xs) == 1:
            ax.errorbar(xs, [cells[0][1].share or 0.0], yerr=_whisker(cells[0][1]), color=color, capsize=3)


def _whisker(cell: Any) -> list[list[float]]:
    share = cell.share or 0.0
    return [[max(0.0, share - cell.interval.low)], [max(0.0, cell.interval.high - share)]]


def _bytes_line(
    ax: Axes,
    found: list[MemoryPoint],
    what: str,
    *,
    color: str,
    label: str,
    marker: str = "",
    linestyle: str = "-",
    hollow: bool = False,
) -> None:
    known = [(point.length, size) for point in found if (size := getattr(point, what))]
    if not known:
        return
    look: dict[str, Any] = {"color": color, "label": label, "linestyle": "none" if marker else linestyle}
    # the dashed reference must stay visible where a setting lies on it
    look["zorder"] = 3 if marker else 2.5 if linestyle == "--" else 2
    if marker:
        look |= {"marker": marker, "markersize": 9 if hollow else 5}
        look |= {"markerfacecolor": "none"} if hollow else {}
    ax.plot([length for length, _ in known], [size for _, size in known], **look)


def _legend(ax: Axes, title: str) -> None:
    place = (1.0, 0.5)
    legend = ax.legend(
        fontsize=8, frameon=False, loc="center left", bbox_to_anchor=place, title=title, alignment="left"
    )
    legend.get_title().set_fontsize(8)


def _length_axis(ax: Axes, lengths: list[int]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(FixedLocator(thinned(lengths)))
    ax.xaxis.set_major_formatter(lambda tokens, _: length_label(round(tokens)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("length (tokens)")
    ax.grid(visible=True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _title(record: RunRecord, what: str) -> str:
    models = ", ".join(sorted({row.model for row in record.rows}))
    return textwrap.fill(f"{models} · {what}", 72)
