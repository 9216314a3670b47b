"""The 16-bit cache kept in the host's memory, brought to the GPU one layer at a time."""

from __future__ import annotations

from niah.kv.config import KVConfig, Placement
from niah.kv.preset import KVPreset


def _make() -> KVConfig:
    return KVConfig("offload", placement=Placement(offload="cpu"))


PLUGIN = KVPreset("offload", "the cache in host memory, read to the GPU one layer at a time, 16 bit: lossless", _make)
