"""transformers' own QuantizedCache with the package hqq, in 4 bits."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.formats import Hqq
from niah.kv.preset import KVPreset


def _make(group_size: int) -> KVConfig:
    stored = Hqq("int4", group_size)
    return KVConfig("hqq4", stored, stored, prefill_reads="raw_chunk")


PLUGIN = KVPreset(
    "hqq4",
    "transformers' QuantizedCache with hqq, 4 bits; the prompt is attended to before it is quantized",
    _make,
    {"group_size": 64},
    paper="https://github.com/mobiusml/hqq",
)
