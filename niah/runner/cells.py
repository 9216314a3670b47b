"""The cells of a plan as values: each with its KV setting, its context, its case and its ids."""

from __future__ import annotations

from dataclasses import dataclass

from niah.kv.config import KVConfig
from niah.runner.prompt_builder import Group
from niah.types import Case


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One question under one KV setting.

    Attributes:
        position: of its prompt among those of its group.
        cell_id: hash of all that can change the cell's answer.
        pair_id: the same without backend, model and setting: equal for cells that are compared.
    """

    kv: KVConfig
    group: Group
    position: int
    case: Case
    cell_id: str
    pair_id: str


@dataclass(frozen=True, slots=True)
class PendingCells:
    """Cells of one group that still need an answer, in the order of their positions."""

    group: Group
    cells: tuple[PlannedCell, ...]
