"""``KVConfig``: what is asked of the KV cache, in words of no engine; presets are one file each beside this one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from niah.errors import ConfigError, near
from niah.registry import Plugin

# bits of one stored element, without scales
ELEMENT_BITS: Mapping[str, int] = {
    "fp32": 32,
    "bf16": 16,
    "fp16": 16,
    "fp8_e4m3": 8,
    "fp8_e5m2": 8,
    "int8": 8,
    "int4": 4,
    "int3": 3,
    "int2": 2,
    "nvfp4": 4,
    "q8_0": 8,
    "q5_1": 5,
    "q5_0": 5,
    "q4_1": 4,
    "q4_0": 4,
    "iq4_nl": 4,
}
SIXTEEN_BIT = ("bf16", "fp16")
# llama.cpp's blocks (ggml/src/ggml-common.h): 32 elements, an fp16 scale, and in the _1 types an fp16 minimum
BLOCK_ELEMENTS = 32
BLOCK_SCALE_BYTES: Mapping[str, int] = {"q8_0": 2, "q5_1": 4, "q5_0": 2, "q4_1": 4, "q4_0": 2, "iq4_nl": 2}


def block_bytes(dtype: str) -> int:
    """Bytes of one block of 32 elements of a llama.cpp type: 34 for ``q8_0``, 18 for ``q4_0``."""
    return BLOCK_ELEMENTS * ELEMENT_BITS[dtype] // 8 + BLOCK_SCALE_BYTES[dtype]


@dataclass(frozen=True, slots=True)
class KVConfig:
    """A KV-cache setting: *what* is wanted. How an engine spells it stays in that engine's backend.

    Attributes:
        name: label in tables and rows, for instance ``int8`` or ``streaming(sinks=4,window=512)``.
        k_dtype, v_dtype: stored element type of keys and values; ``auto`` leaves it to the engine.
        granularity: what shares one scale: ``none``, ``tensor``, ``token_head`` (one per token and head),
            ``group_token`` (groups along head_dim, per token), ``block`` (llama.cpp's blocks of 32 along head_dim),
            ``kivi`` (keys per channel along tokens, values per token).
        group_size: elements per group; must divide head_dim (per token) or the residual (per channel).
        symmetric: scale only (True) or scale and zero point (False).
        scales: ``dynamic`` (from the data), ``checkpoint``, ``unit`` (1.0).
        rounding: of 8-bit floats: ``nearest`` (halves to even), or ``zero``, which cuts off what does not fit.
        residual: newest tokens kept in 16 bit.
        skip_layers: layer indices, or ``sliding_window``, left in 16 bit.
        window: keep only the newest ``window`` tokens in every layer; None leaves it to the model.
        sinks: first tokens kept for ever (StreamingLLM); needs ``window``.
        sink_positions: ``in_cache`` (positions renumbered inside the cache) or ``original``.
        kv_heads: merge the model's KV heads to this number by mean pooling.
        memory: ``kv``, or ``infini`` for compressive memory.
        segment: tokens of a local segment when ``memory`` is ``infini``.
        memory_gate: share of the compressive memory in attention's output, 0 (local only) to 1.
        memory_update: ``delta`` or ``linear``, how a segment goes into the compressive memory.
        prefill_chunk: tokens per prefill step; None leaves it to the backend.
        prefill_reads: ``quantised`` (attention reads what is stored, also in prefill) or ``raw_chunk``.
        block_size, pool_bytes: paging, where the engine pages.
        tp, pp, context_parallel: devices per tensor, pipeline and sequence.
        offload: ``cpu`` to keep the cache on the host.
        rope: ``(type, factor, original_max)`` for a context longer than trained.
        native: engine-specific pairs, passed on and recorded as they are.
    """

    name: str
    k_dtype: str = "bf16"
    v_dtype: str = "bf16"
    granularity: str = "none"
    group_size: int | None = None
    symmetric: bool = True
    scales: str = "dynamic"
    rounding: str = "nearest"
    residual: int = 0
    skip_layers: tuple[int | str, ...] = ()
    window: int | None = None
    sinks: int = 0
    sink_positions: str = "in_cache"
    kv_heads: int | None = None
    memory: str = "kv"
    segment: int | None = None
    memory_gate: float = 0.5
    memory_update: str = "delta"
    prefill_chunk: int | None = None
    prefill_reads: str = "quantised"
    block_size: int | None = None
    pool_bytes: int | None = None
    tp: int = 1
    pp: int = 1
    context_parallel: int = 1
    offload: str | None = None
    rope: tuple[str, float, int] | None = None
    native: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """All fields, in an order that does not change: goes into ids and manifests."""
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> KVConfig:
        """The inverse of ``to_json``; unknown keys are errors."""
        known = {f.name for f in fields(KVConfig)}
        for key in data:
            if key not in known:
                raise ConfigError(f"unknown KV field {key!r}.{near(key, known)}")
        values = dict(data)
        for key in ("skip_layers", "rope"):
            if isinstance(values.get(key), list):
                values[key] = tuple(values[key])
        values["native"] = tuple((str(k), str(v)) for k, v in values.get("native", ()))
        return KVConfig(**values)

    @property
    def is_plain(self) -> bool:
        """True for an unquantised cache that keeps every token as the model made it."""
        same = self.k_dtype == self.v_dtype and self.k_dtype in (*SIXTEEN_BIT, "fp32", "auto")
        return same and self.window is None and self.kv_heads is None and self.memory == "kv"


def is_quantised(kv: KVConfig) -> bool:
    """Whether keys or values are stored in fewer than 16 bits."""
    return min(ELEMENT_BITS.get(dtype, 16) for dtype in (kv.k_dtype, kv.v_dtype)) < 16


@dataclass(frozen=True, slots=True)
class KVPreset(Plugin):
    """A named KV setting.

    Attributes:
        make: from the preset's arguments (already converted to int, float or str) to a ``KVConfig``.
        parameters: names of the arguments with their defaults; None marks a required one.
        paper: where the method comes from.
        rest: what an open list of arguments without names holds (``skip(0,1,-1)``: layers); empty where there is none.
        example: a whole setting that shows the preset in use, for lists; needed where the name alone is not one.
    """

    kind: ClassVar[str] = "kv"
    make: Callable[..., KVConfig]
    parameters: Mapping[str, int | float | str | None] | None = None
    paper: str = ""
    rest: str = ""
    example: str = ""
