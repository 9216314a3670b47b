"""Differences of two KV settings, cell by cell, over the same questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from niah.grid import counted
from niah.stats.compare import cell_differences
from niah.stats.intervals import Interval
from niah.stats.pairs import join_rows
from niah.stats.power import ALPHA
from niah.store.read import RunRecord
from niah.store.schema import Row


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


def points(delta: float) -> str:
    """A difference of shares in points with its sign: 0.05 is ``+5``; no change is ``0``."""
    rounded = round(delta * 100)
    return f"{rounded:+d}".replace("-", "−") if rounded else "0"
