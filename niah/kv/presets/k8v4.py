"""8-bit keys and 4-bit values: keys lose more by rounding, since their errors pass through the softmax."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.formats import Grouped, TokenHead
from niah.kv.preset import KVPreset

# as int4 has it, so that k8v4 against int4 shows what the keys lose
GROUP_SIZE = 32


def _make(group_size: int) -> KVConfig:
    return KVConfig("k8v4", TokenHead("int8"), Grouped("int4", group_size))


PLUGIN = KVPreset(
    "k8v4",
    "keys in 8-bit integers (one fp32 scale per token and head), values in 4-bit ones (groups along head_dim)",
    _make,
    {"group_size": GROUP_SIZE},
    paper="arXiv:2502.15075",
)
