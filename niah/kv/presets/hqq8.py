"""transformers' own QuantizedCache with the package hqq, in 8 bits."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.formats import Hqq
from niah.kv.preset import KVPreset


def _make(group_size: int) -> KVConfig:
    stored = Hqq("int8", group_size)
    return KVConfig("hqq8", stored, stored, prefill_reads="raw_chunk")


PLUGIN = KVPreset(
    "hqq8",
    "transformers' QuantizedCache with hqq, 8 bits; the prompt is attended to before it is quantized",
    _make,
    {"group_size": 64},
    paper="https://github.com/mobiusml/hqq",
)
