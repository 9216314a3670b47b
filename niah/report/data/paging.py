"""What paging wastes: blocks held beyond the tokens in them, beside one reservation at the engine's longest length.

The comparison is PagedAttention's (arXiv:2309.06180, section 3): an engine without blocks reserves every sequence's
cache at ``max_model_len``, and what an answer does not fill is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from niah.store.read import RunRecord
from niah.store.schema import Row

# where a backend says how many bytes one sequence of the longest length takes without blocks
CONTIGUOUS = "kv.contiguous_bytes"


@dataclass(frozen=True, slots=True)
class PagingWaste:
    """Shares (0–1) of the memory held that hold no token, over the cells whose blocks were counted.

    Attributes:
        blocks: of the blocks held at their peak.
        contiguous: of a reservation at ``max_model_len`` per sequence; None where the backend does not give its size.
    """

    kv: str
    cells: int
    blocks: float
    contiguous: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def sentence(self) -> str:
        text = f"{self.kv}: {self.blocks * 100:.1f} % of the blocks held store no token"
        if self.contiguous is not None:
            text += f", against {self.contiguous * 100:.1f} % of one reservation at the longest length"
        return f"{text} ({self.cells:,} cells)."


def paging_waste(record: RunRecord) -> list[PagingWaste]:
    """One entry a KV setting whose blocks were counted."""
    found = []
    for kv in record.kvs():
        held = list(_held(row for row in record.rows if row.kv == kv))
        if not held:
            continue
        needed, allocated = (sum(column) for column in zip(*held, strict=True))
        effective = record.setting(kv).get("effective")
        reserved = effective.get(CONTIGUOUS) if isinstance(effective, dict) else None
        contiguous = 1 - needed / (reserved * len(held)) if isinstance(reserved, int) and reserved > 0 else None
        found.append(PagingWaste(kv, len(held), 1 - needed / allocated, contiguous))
    return found


def _held(rows: Iterable[Row]) -> Iterable[tuple[int, int]]:
    """(bytes needed, bytes in blocks) of rows that know both."""
    for row in rows:
        usage = row.kv_memory
        if usage.source == "measured_blocks" and usage.logical_bytes and usage.allocated_bytes:
            yield usage.logical_bytes, usage.allocated_bytes
