"""The KV cache in llama.cpp's log: cells, layers, types and sizes.

Source of the lines: llama.cpp ``src/llama-kv-cache.cpp`` (size), ``llama-kv-cache-iswa.cpp`` (which of two caches),
``llama-context.cpp`` (flash_attn), ``llama-model.cpp`` (n_swa).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from niah.kv.formats import BLOCK_ELEMENTS, BLOCK_SCALE_BYTES, ELEMENT_BITS, Block

MIB = 1 << 20
# llama.cpp prints MiB with two decimals
_ROUNDING_BYTES = 0.005 * MIB
# llama.cpp's words for types -> ours
NAMES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", **{name: name for name in BLOCK_SCALE_BYTES}}

_SIZE = re.compile(
    r"llama_kv_cache: size =\s*(?P<mib>[\d.]+) MiB \(\s*(?P<cells>\d+) cells,\s*(?P<layers>\d+) layers,[^)]*\),"
    r" K \((?P<k>\w+)\):\s*(?P<k_mib>[\d.]+) MiB, V \((?P<v>\w+)\):\s*(?P<v_mib>[\d.]+) MiB"
)
_WHICH = re.compile(r"creating\s+(?P<which>non-SWA|SWA) KV cache")
_FLASH = re.compile(r"llama_context: flash_attn\s*=\s*(\w+)")
_WINDOW = re.compile(r"print_info: n_swa\s*=\s*(\d+)")
_ROTATION = re.compile(r"llama_kv_cache: n_rot_([kv]) = (\d+)")


@dataclass(frozen=True, slots=True)
class CachePart:
    """One of the engine's KV caches; a model with window layers has two.

    Attributes:
        cells: tokens that it has room for.
        k_mib, v_mib: as printed, to two decimals.
        is_window: whether it is the cache of the window layers.
    """

    cells: int
    layers: int
    k_dtype: str
    v_dtype: str
    k_mib: float
    v_mib: float
    is_window: bool = False

    @property
    def cell_bytes(self) -> int | None:
        """Exact bytes of one cell: the printed sizes, set to the whole number of blocks per layer that they allow.

        None where no such number agrees with what was printed (layers of different sizes).
        """
        keys, values = self._side(self.k_dtype, self.k_mib), self._side(self.v_dtype, self.v_mib)
        return None if keys is None or values is None else keys + values

    def _side(self, dtype: str, mib: float) -> int | None:
        unit = self.layers * _block(dtype)
        exact = round(mib * MIB / self.cells / unit) * unit
        return exact if abs(exact * self.cells - mib * MIB) <= _ROUNDING_BYTES else None


def _block(dtype: str) -> int:
    return Block(dtype).block_bytes if dtype in BLOCK_SCALE_BYTES else BLOCK_ELEMENTS * ELEMENT_BITS[dtype] // 8


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The engine's own report once it has loaded.

    Attributes:
        window: tokens that window layers attend to; None for a model without.
        rotated: sides (``k``, ``v``) whose heads llama.cpp rotates before it quantizes them.
        keeps_all: whether window layers were told to keep all tokens (``swa_full``).
    """

    parts: tuple[CachePart, ...]
    flash_attn: str
    window: int | None
    rotated: tuple[str, ...] = ()
    keeps_all: bool = False

    @property
    def pool_bytes(self) -> int | None:
        """All that is reserved, whether it is used or not."""
        return self._total(lambda part: part.cells)

    def held_bytes(self, tokens: int) -> int | None:
        """Cells in use after ``tokens``."""
        return self._total(lambda part: min(tokens, part.cells))

    def logical_bytes(self, tokens: int) -> int | None:
        """What ``tokens`` need: of window layers the newest ``window`` of them, unless all are kept."""
        window = None if self.keeps_all else self.window
        return self._total(lambda part: min(tokens, window) if part.is_window and window is not None else tokens)

    def _total(self, cells: Callable[[CachePart], int]) -> int | None:
        sizes = [part.cell_bytes for part in self.parts]
        if not sizes or any(size is None for size in sizes):
            return None
        return sum(cells(part) * (size or 0) for part, size in zip(self.parts, sizes, strict=True))

    def effective(self) -> dict[str, Any]:
        """Flat names and values for the record of settings in force."""
        if not self.parts:
            return {"flash_attn": self.flash_attn}
        first = self.parts[0]
        values: dict[str, Any] = {
            "kv.k_dtype": first.k_dtype,
            "kv.v_dtype": first.v_dtype,
            "kv.cells": first.cells,
            "kv.reported_mib": round(sum(part.k_mib + part.v_mib for part in self.parts), 2),
            "kv.pool_bytes": self.pool_bytes,
            "kv.rotated": ",".join(self.rotated) or "none",
            "flash_attn": self.flash_attn,
        }
        if self.window is not None:
            values["kv.model_window"] = self.window
            values["kv.window_cells"] = next((part.cells for part in self.parts if part.is_window), None)
        return {name: value for name, value in values.items() if value is not None}


def read_report(log: str, *, keeps_all: bool = False) -> EngineReport:
    """The report in a log; a field that the log does not hold stays empty, never guessed."""
    flash, window = _FLASH.search(log), _WINDOW.search(log)
    rotated = sorted({side for side, size in _ROTATION.findall(log) if int(size)})
    size = int(window[1]) if window else 0
    return EngineReport(tuple(_parts(log)), flash[1] if flash else "unknown", size or None, tuple(rotated), keeps_all)


def _parts(log: str) -> Iterator[CachePart]:
    which = ""
    for line in log.splitlines():
        named = _WHICH.search(line)
        if named:
            which = named["which"]
        found = _SIZE.search(line)
        if found and found["k"] in NAMES and found["v"] in NAMES:
            yield CachePart(
                cells=int(found["cells"]),
                layers=int(found["layers"]),
                k_dtype=NAMES[found["k"]],
                v_dtype=NAMES[found["v"]],
                k_mib=float(found["k_mib"]),
                v_mib=float(found["v_mib"]),
                is_window=which == "SWA",
            )
