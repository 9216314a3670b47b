"""Depth by length: one KV setting as a grid of shares, drawn as a heatmap with matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from niah.grid import is_off
from niah.report.drawing import (
    Box,
    cross,
    draw_mesh,
    fill,
    grid_axes,
    legend_below,
    save_figure,
    square,
    stamp,
    write_number,
)
from niah.report.palette import EMPTY, Palette, share_color, stops
from niah.stats.clustered import LEANING, clustered_interval, contexts_of, is_assumed
from niah.stats.intervals import Interval
from niah.stats.power import MIN_CONTEXTS
from niah.store.read import RunRecord, newest
from niah.store.schema import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW_TRIALS = 5
ASSUMED_NOTE = (
    f"Those over fewer than {MIN_CONTEXTS} texts assume that answers of one text are correlated by {LEANING:g}."
)
BROKEN_LABEL = "BROKEN: canary failed"
OFF_LABEL = "needle not at its depth"


@dataclass(frozen=True, slots=True)
class CellSummary:
    """What the trials of one square of the grid, or of several, came to.

    Attributes:
        hits: answered and right.
        trials: all that were asked, whatever became of them.
        answered, failed, truncated, refused: outcomes; they add up to ``trials``.
        mean_logprob: of the expected answer, natural, over answered trials that have it.
        interval: 95 % of ``hits`` in ``answered``, robust to questions of one text failing together; with one question
            a text it is Wilson's.
        depth_real: mean of the depths really built, 0–1.
        contexts: texts (length, trial) that the answered trials lie in.
    """

    hits: int
    trials: int
    answered: int
    failed: int
    truncated: int
    refused: int
    mean_logprob: float | None
    interval: Interval
    depth_real: float | None = None
    contexts: int = 0

    @property
    def share(self) -> float | None:
        """Accuracy over answered trials; None when none was answered."""
        return self.hits / self.answered if self.answered else None

    @property
    def few(self) -> bool:
        """Whether there is an answer, but fewer than five."""
        return 0 < self.answered < FEW_TRIALS

    @property
    def is_assumed(self) -> bool:
        """Whether the interval takes for granted how far questions of one text fail together: too few texts to see."""
        return is_assumed(self.contexts, self.answered)


@dataclass(frozen=True, slots=True)
class Grid:
    """One KV setting over lengths (tokens, ascending) and depths (0–1, ascending); squares not run are absent."""

    kv: str
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    cells: Mapping[tuple[int, float], CellSummary]
    rows: tuple[Row, ...] = ()
    model: str = ""
    task: str = ""
    broken: bool = False

    def at_length(self, length: int) -> CellSummary:
        """All depths of one length together."""
        return summarize(row for row in self.rows if row.length == length)

    def at_depth(self, depth: float) -> CellSummary:
        """All lengths of one depth together."""
        return summarize(row for row in self.rows if row.depth == depth)

    def total(self) -> CellSummary:
        """The whole grid together."""
        return summarize(self.rows)

    def off_depth(self, length: int, depth: float) -> float | None:
        """Where the needles of a square lie in the mean, if that is not where they were asked."""
        cell = self.cells.get((length, depth))
        return cell.depth_real if cell is not None and is_off(depth, cell.depth_real) else None

    def depth_label(self, depth: float) -> str:
        """A depth in percent for the axis, with the real one where no length has its needles at the asked one."""
        label = f"{depth * 100:.3g}"
        squares = [length for length in self.lengths if (length, depth) in self.cells]
        off = [real for length in squares if (real := self.off_depth(length, depth)) is not None]
        mean = math.fsum(off) / len(off) if off else None
        is_whole = mean is not None and len(off) == len(squares) and is_off(depth, mean)
        return f"{label}→{100 * mean:.3g}" if mean is not None and is_whole else label

    @property
    def title(self) -> str:
        """Model · KV setting · task · answered trials."""
        parts = [self.model, self.kv, self.task, f"n = {self.total().answered:,}"]
        return " · ".join(part for part in parts if part)


def summarize(rows: Iterable[Row]) -> CellSummary:
    """Counts of some rows. Only answered ones are right or wrong."""
    kept = list(rows)
    outcomes = [row.outcome for row in kept]
    answered = [row for row in kept if row.outcome == "answered"]
    hits = sum(row.correct is True for row in answered)
    contexts = contexts_of(answered)
    return CellSummary(
        hits=hits,
        trials=len(kept),
        answered=len(answered),
        failed=outcomes.count("failed"),
        truncated=outcomes.count("truncated"),
        refused=outcomes.count("refused"),
        mean_logprob=_mean([row.logprob for row in answered if row.logprob is not None]),
        interval=clustered_interval(contexts),
        depth_real=_mean([row.depth_real for row in kept if row.depth_real is not None]),
        contexts=len(contexts),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def build_grid(
    rows: Iterable[Row],
    kv: str,
    *,
    broken: bool = False,
    lengths: Iterable[int] = (),
    depths: Iterable[float] = (),
) -> Grid:
    """The grid of one KV setting.

    Args:
        rows: rows of all settings, so that every setting gets the same axes; a repeated cell is counted once.
        broken: whether the setting failed its canary.
        lengths, depths: further values of the axes, for squares that were planned but not run.
    """
    counted = list(newest(rows).values())
    own = tuple(row for row in counted if row.kv == kv)
    squares: dict[tuple[int, float], list[Row]] = {}
    for row in own:
        squares.setdefault((row.length, row.depth), []).append(row)
    return Grid(
        kv=kv,
        lengths=tuple(sorted({*lengths, *(row.length for row in counted)})),
        depths=tuple(sorted({*depths, *(row.depth for row in counted)})),
        cells={square: summarize(members) for square, members in sorted(squares.items())},
        rows=own,
        model=", ".join(sorted({row.model for row in own})),
        task=", ".join(sorted({row.task for row in own})),
        broken=broken,
    )


def record_grid(record: RunRecord, kv: str) -> Grid:
    """The grid of one setting of a run, with the canary's verdict and the axes that were asked for."""
    asked = record.manifest.get("asked")
    planned = asked if isinstance(asked, Mapping) else {}
    return build_grid(
        record.rows,
        kv,
        broken=record.broken(kv),
        lengths=[int(v) for v in _numbers(planned.get("lengths")) if v >= 1],
        depths=[v for v in _numbers(planned.get("depths")) if 0 <= v <= 1],
    )


def _numbers(value: Any) -> list[float]:
    """The numbers of a list of numbers; nothing where the manifest has the user's text instead."""
    if not isinstance(value, list) or not all(type(v) in (int, float) for v in value):
        return []
    return value


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
