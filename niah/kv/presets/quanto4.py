"""transformers' own QuantizedCache with the package optimum-quanto, in 4 bits."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.formats import Quanto
from niah.kv.preset import KVPreset


def _make(group_size: int) -> KVConfig:
    stored = Quanto("int4", group_size)
    return KVConfig("quanto4", stored, stored, prefill_reads="raw_chunk")


PLUGIN = KVPreset(
    "quanto4",
    "transformers' QuantizedCache with optimum-quanto, 4 bits; the prompt is attended to before it is quantized",
    _make,
    {"group_size": 64},
    paper="https://github.com/huggingface/optimum-quanto",
)
