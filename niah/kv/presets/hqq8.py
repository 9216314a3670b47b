"""transformers' own QuantizedCache with the package hqq, in 8 bits."""

from __future__ import annotations

from niah.kv.config import KVConfig, KVPreset
from niah.kv.families.library import library_setting


def _make(group_size: int) -> KVConfig:
    return library_setting("hqq8", "hqq", 8, group_size)


PLUGIN = KVPreset(
    "hqq8",
    "transformers' QuantizedCache with hqq, 8 bits; the prompt is attended to before it is quantised",
    _make,
    {"group_size": 64},
    paper="https://github.com/mobiusml/hqq",
)
