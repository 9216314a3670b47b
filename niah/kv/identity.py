"""The canonical form of a KV setting: what cell, pair and run ids hash. It is frozen, and apart from the classes.

The keys and words below are those of the first release. A part that came later is written only where it is set, so
that settings which could be asked before keep their ids. ``tests/golden/kv_ids.json`` holds them.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from niah.kv.config import Infini, KVConfig, Window
from niah.kv.formats import Grouped, TokenHead

_PREFILL_WORDS = {"stored": "quantised", "raw_chunk": "raw_chunk"}
_NO_WINDOW = Window(0)
_NO_MEMORY = Infini(0)
# what a format leaves out
_FORMAT = {"granularity": "none", "group_size": None, "symmetric": True, "scales": "dynamic", "rounding": "nearest"}


def canonical(kv: KVConfig) -> dict[str, Any]:
    """A setting as JSON, the same in every release."""
    window, memory, place = kv.window or _NO_WINDOW, kv.memory or _NO_MEMORY, kv.placement
    return {
        "name": kv.name,
        "k_dtype": kv.keys.element,
        "v_dtype": kv.values.element,
        **_formats(kv),
        "residual": kv.residual,
        "skip_layers": list(kv.skip_layers),
        "window": window.size or None,
        "sinks": window.sinks,
        "sink_positions": window.positions,
        "kv_heads": kv.kv_heads,
        "memory": "infini" if kv.memory else "kv",
        "segment": memory.segment or None,
        "memory_gate": memory.gate,
        "memory_update": memory.update,
        "prefill_reads": _PREFILL_WORDS[kv.prefill_reads],
        "block_size": place.block_size,
        "tp": place.tensor_parallel,
        "pp": place.pipeline_parallel,
        "context_parallel": place.context_parallel,
        "offload": place.offload,
        "native": [list(pair) for pair in kv.native],
        # of the first release, in which nothing could set them
        "prefill_chunk": None,
        "pool_bytes": None,
        "rope": None,
        **({"extras": [[extra.aspect, asdict(extra)] for extra in kv.extras]} if kv.extras else {}),
    }


def _formats(kv: KVConfig) -> dict[str, Any]:
    """Both formats in one: the first release had one kind of scale for keys and values together."""
    keys, values = kv.keys.canonical(), kv.values.canonical()
    both = {**_FORMAT, **keys, **values}
    both["symmetric"] = keys.get("symmetric", True) and values.get("symmetric", True)
    # beside groups it took 8-bit keys with a scale per token and head as understood
    implied = kv.keys == TokenHead(kv.keys.element) and isinstance(kv.values, Grouped)
    if implied or all(both[word] == value for word, value in keys.items() if word != "symmetric"):
        return both
    return {**both, "keys": keys}
