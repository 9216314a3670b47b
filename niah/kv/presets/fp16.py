"""The unquantised cache in float16."""

from __future__ import annotations

from niah.kv.config import KVConfig, KVPreset


def _make() -> KVConfig:
    return KVConfig("fp16", "fp16", "fp16")


PLUGIN = KVPreset("fp16", "16-bit IEEE float, unquantised: 2 bytes an element", _make)
