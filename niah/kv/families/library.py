"""What the presets of transformers' QuantizedCache have in common: optimum-quanto and hqq."""

from __future__ import annotations

from niah.kv.config import KVConfig


def library_setting(name: str, library: str, bits: int, group_size: int) -> KVConfig:
    """The setting of a preset: what the package quantises is read from the second pass on, the prompt itself raw."""
    dtype = f"int{bits}"
    return KVConfig(
        name, dtype, dtype, granularity=library, group_size=group_size, symmetric=False, prefill_reads="raw_chunk"
    )
