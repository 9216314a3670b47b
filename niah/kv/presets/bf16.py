"""The unquantized cache in bfloat16."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from niah.kv.preset import KVPreset


def _make() -> KVConfig:
    return KVConfig("bf16", Plain("bf16"), Plain("bf16"))


PLUGIN = KVPreset("bf16", "16-bit brain float, unquantized: 2 bytes an element", _make)
