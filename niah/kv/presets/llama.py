"""Any two of llama.cpp's cache types, one for keys and one for values."""

from __future__ import annotations

from niah.kv.config import KVConfig, KVPreset
from niah.kv.families.llama import block_config


def _make(k: str, v: str) -> KVConfig:
    return block_config("llama", k, v)


PLUGIN = KVPreset(
    "llama",
    "llama.cpp's types for keys and values apart, such as llama(k=q8_0,v=q4_0)",
    _make,
    {"k": "fp16", "v": "fp16"},
)
