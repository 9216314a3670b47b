"""The unquantised cache in bfloat16."""

from __future__ import annotations

from niah.kv.config import KVConfig, KVPreset


def _make() -> KVConfig:
    return KVConfig("bf16", "bf16", "bf16")


PLUGIN = KVPreset("bf16", "16-bit brain float, unquantised: 2 bytes an element", _make)
