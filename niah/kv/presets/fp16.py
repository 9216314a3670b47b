"""The unquantized cache in float16."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from niah.kv.preset import KVPreset


def _make() -> KVConfig:
    return KVConfig("fp16", Plain("fp16"), Plain("fp16"))


PLUGIN = KVPreset("fp16", "16-bit IEEE float, unquantized: 2 bytes an element", _make)
