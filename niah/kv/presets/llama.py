"""Any two of llama.cpp's cache types, one for keys and one for values."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.families.llama import block_format
from niah.kv.preset import KVPreset


def _make(k: str, v: str) -> KVConfig:
    return KVConfig("llama", block_format(k), block_format(v))


PLUGIN = KVPreset(
    "llama",
    "llama.cpp's types for keys and values apart, such as llama(k=q8_0,v=q4_0)",
    _make,
    {"k": "fp16", "v": "fp16"},
)
