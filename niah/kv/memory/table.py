"""Rows of ``niah memory``: one per setting and length, also for settings that the model does not support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from niah.errors import ConfigError
from niah.kv.config import KVConfig
from niah.kv.memory.formula_text import formula_text
from niah.kv.memory.totals import fits, kv_bytes, naive_mha_bytes, paged_bytes, reference_bytes, weights_bytes
from niah.models.shape import ModelShape
from niah.types import JSON

_WHERE_NEEDED = ("refused", "not_counted")


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One line of ``niah memory``: bytes of one KV setting at one length, all sequences of the batch together.

    Attributes:
        length: tokens stored per sequence.
        logical_bytes: what the tokens need; None where the setting is refused.
        allocated_bytes: the same with unfilled slots, where the setting has blocks.
        reference_bytes: the same cache in 16 bit.
        naive_mha_bytes: the textbook formula.
        fits: weights and cache in the memory asked about; None when nobody asked or the weights are unknown.
        refused: why this model's cache cannot have the setting; empty where it can.
        not_counted: what of the model's cache the figures leave out; empty where they hold everything.
    """

    kv: str
    length: int
    batch: int
    logical_bytes: int | None
    allocated_bytes: int | None
    naive_mha_bytes: int
    reference_bytes: int
    weights_bytes: int | None
    formula: str
    fits: bool | None
    refused: str = ""
    not_counted: str = ""

    def to_json(self) -> dict[str, JSON]:
        """All fields; ``refused`` and ``not_counted`` only where they are not empty."""
        return {name: value for name, value in asdict(self).items() if value != "" or name not in _WHERE_NEEDED}


def memory_rows(
    shape: ModelShape, kvs: Sequence[KVConfig], lengths: Sequence[int], batch: int = 1, gpu_bytes: int | None = None
) -> list[MemoryRow]:
    """One row per KV setting and length, where a length is the number of tokens stored (T = length).

    A setting that the model's cache cannot have gets rows that say why.

    Raises:
        ConfigError: no setting goes with the model's shape; the first one's reason.
    """
    rows, refusals = [], []
    for kv in kvs:
        formula = refused = ""
        try:
            formula = _formula(shape, kv, batch)
        except ConfigError as err:
            refusals.append(err)
            refused = str(err).removeprefix(f"{kv.name}: ")
        rows += [_row(shape, kv, length, batch, gpu_bytes, formula, refused) for length in lengths]
    if refusals and len(refusals) == len(kvs):
        raise refusals[0]
    return rows


def _formula(shape: ModelShape, kv: KVConfig, batch: int) -> str:
    formula = formula_text(shape, kv) + (f"; times {batch} sequences" if batch > 1 else "")
    return formula + (f"; T rounded up to blocks of {kv.placement.block_size}" if kv.placement.block_size else "")


def _row(
    shape: ModelShape, kv: KVConfig, length: int, batch: int, gpu_bytes: int | None, formula: str, refused: str
) -> MemoryRow:
    held = None if refused else paged_bytes(shape, kv, length, batch)
    weights = weights_bytes(shape)
    return MemoryRow(
        kv=kv.name,
        length=length,
        batch=batch,
        logical_bytes=None if refused else kv_bytes(shape, kv, length, batch),
        allocated_bytes=held,
        naive_mha_bytes=naive_mha_bytes(shape, length, batch),
        reference_bytes=reference_bytes(shape, length, batch),
        weights_bytes=weights,
        formula=formula,
        fits=None if held is None else fits(weights, held, gpu_bytes),
        refused=refused,
        not_counted=shape.uncounted,
    )
