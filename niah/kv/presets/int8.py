"""8-bit integers with one scale per token and KV head, for keys and for values."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.formats import TokenHead
from niah.kv.preset import KVPreset


def _make() -> KVConfig:
    return KVConfig("int8", TokenHead("int8"), TokenHead("int8"))


PLUGIN = KVPreset("int8", "8-bit integers, one fp32 scale per token and KV head (symmetric)", _make)
