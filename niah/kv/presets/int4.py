"""4-bit integers in groups along head_dim, with scale and zero point per group."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.formats import Grouped
from niah.kv.preset import KVPreset

GROUP_SIZE = 32


def _make(group_size: int) -> KVConfig:
    return KVConfig("int4", Grouped("int4", group_size), Grouped("int4", group_size))


PLUGIN = KVPreset(
    "int4",
    "4-bit integers, fp16 scale and zero point per group of group_size along head_dim",
    _make,
    {"group_size": GROUP_SIZE},
)
