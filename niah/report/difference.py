"""Difference maps: the same cells under two settings, pair by pair."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from niah.grid import counted
from niah.report.drawing import draw_mesh, grid_axes, pale, save_figure, square, stamp, write_number
from niah.report.heatmap import BROKEN_LABEL
from niah.report.palette import DIFFERENCE_LIMIT, WORSE_TO_BETTER, difference_color
from niah.stats.compare import cell_differences
from niah.stats.intervals import Interval
from niah.stats.pairs import join_rows
from niah.stats.power import ALPHA
from niah.store.read import RunRecord
from niah.store.schema import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class PairSummary:
    """Pairs of one square: the same needle in the same text, answered under both settings.

    Attributes:
        gained, lost: pairs that only the new, only the reference setting got right.
        p_holm: exact McNemar, corrected over all squares of the map; None for a sum of squares.
        interval: 95 % of ``delta``.
        logprob_delta: mean change of the expected answer's log-probability, nats; None where unknown.
    """

    pairs: int
    gained: int
    lost: int
    p_holm: float | None = None
    interval: Interval | None = None
    logprob_delta: float | None = None

    @property
    def delta(self) -> float:
        """Accuracy of the new setting minus that of the reference, -1 to 1."""
        return (self.gained - self.lost) / self.pairs

    @property
    def significant(self) -> bool:
        """Whether the change is beyond chance at 5 %, in view of how many squares were looked at."""
        return self.p_holm is not None and self.p_holm < ALPHA


@dataclass(frozen=True, slots=True)
class Difference:
    """New minus reference over lengths (tokens) and depths (0–1); squares without a pair are absent."""

    kv: str
    reference: str
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    cells: Mapping[tuple[int, float], PairSummary]
    model: str = ""
    broken: bool = False

    def total(self) -> PairSummary | None:
        """All pairs together; None when there are none."""
        cells = self.cells.values()
        pairs = sum(cell.pairs for cell in cells)
        gained, lost = sum(cell.gained for cell in cells), sum(cell.lost for cell in cells)
        return PairSummary(pairs, gained, lost) if pairs else None

    @property
    def title(self) -> str:
        """Model · new minus reference · pairs."""
        total = self.total()
        parts = [self.model, f"{self.kv} minus {self.reference}", counted(total.pairs if total else 0, "pair")]
        return " · ".join(part for part in parts if part)


def build_difference(
    new_rows: Iterable[Row],
    reference_rows: Iterable[Row],
    kv: str,
    reference: str,
    *,
    broken: bool = False,
) -> Difference:
    """Pairs of two settings, joined on ``pair_id``; a pair needs an answer on both sides.

    Args:
        new_rows, reference_rows: may be the same rows of one run, or those of two runs.
        kv, reference: the settings to take from them.
    """
    new = [row for row in new_rows if row.kv == kv]
    old = [row for row in reference_rows if row.kv == reference]
    cells = {
        (cell.length, cell.depth): PairSummary(
            cell.pairs, cell.gained, cell.lost, cell.p_holm, cell.ci, cell.logprob_delta
        )
        for cell in cell_differences(join_rows(old, new))
    }
    return Difference(
        kv=kv,
        reference=reference,
        lengths=tuple(sorted({length for length, _ in cells})),
        depths=tuple(sorted({depth for _, depth in cells})),
        cells=dict(sorted(cells.items())),
        model=", ".join(sorted({row.model for row in new})) if cells else "",
        broken=broken,
    )


def record_differences(record: RunRecord) -> list[Difference]:
    """Every other setting of a run against its reference, where they have pairs; none without a reference."""
    reference = record.reference
    if reference is None:
        return []
    others = [kv for kv in record.kvs() if kv != reference]
    found = [build_difference(record.rows, record.rows, kv, reference, broken=record.broken(kv)) for kv in others]
    return [difference for difference in found if difference.cells]


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


def points(delta: float) -> str:
    """A difference of shares in points with its sign: 0.05 is ``+5``; no change is ``0``."""
    rounded = round(delta * 100)
    return f"{rounded:+d}".replace("-", "−") if rounded else "0"
