"""What a run has cost: by setting and by length."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from niah.store.read import RunRecord
from niah.store.schema import Row


@dataclass(frozen=True, slots=True)
class LengthCost:
    """Cells of one setting and length that have a cost.

    Attributes:
        cost_usd: of those cells together.
        cells: how many have a known cost; ``unknown`` how many have not.
        cached: how many of them came from the answer cache, for nothing.
    """

    kv: str
    length: int
    cost_usd: float
    cells: int
    unknown: int
    cached: int

    @property
    def per_cell_usd(self) -> float:
        """Mean over the cells that were asked for."""
        asked = self.cells - self.cached
        return self.cost_usd / asked if asked else 0.0


def cost_usd(rows: Iterable[Row]) -> float | None:
    """Sum of the known costs; None where none is known."""
    known = [row.cost_usd for row in rows if row.cost_usd is not None]
    return sum(known) if known else None


class HasCost(Protocol):
    """A setting whose cost may be known."""

    @property
    def cost_usd(self) -> float | None: ...


def total_cost(settings: Iterable[HasCost]) -> float | None:
    """The same over settings."""
    known = [item.cost_usd for item in settings if item.cost_usd is not None]
    return sum(known) if known else None


def length_costs(record: RunRecord) -> list[LengthCost]:
    """One entry per setting and length where any cost is known, in the manifest's order."""
    found = []
    for kv in record.kvs():
        own = [row for row in record.rows if row.kv == kv]
        for length in sorted({row.length for row in own}):
            cells = [row for row in own if row.length == length]
            known = [row for row in cells if row.cost_usd is not None]
            if known:
                found.append(
                    LengthCost(
                        kv,
                        length,
                        sum(row.cost_usd or 0.0 for row in known),
                        len(known),
                        len(cells) - len(known),
                        sum(row.answer_cached for row in known),
                    )
                )
    return found


def cost_sentence(record: RunRecord) -> str:
    """What the run cost and by which prices; empty where nothing is known."""
    total = cost_usd(record.rows)
    if total is None:
        return ""
    spent: Any = record.manifest.get("spent") or {}
    beside = float(spent.get("beside_usd") or 0.0)
    prices: Any = record.manifest.get("prices") or {}
    by = f", by {prices['source']} of {prices['date']}" if "source" in prices and "date" in prices else ""
    cached = sum(row.answer_cached for row in record.rows)
    free = f", {cached:,} answers from the cache for nothing" if cached else ""
    more = f" and {dollars(beside)} for canaries and checks" if beside else ""
    return f"The cells of this run cost {dollars(total)}{more}{by}{free}."


def dollars(amount: float) -> str:
    """US dollars with the digits that matter: ``$12.34``, ``$0.0123``."""
    if not amount:
        return "$0"
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}" if amount >= 0.001 else f"${amount:.2g}"
