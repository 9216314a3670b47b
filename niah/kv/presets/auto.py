"""Whatever the engine chooses; what it chose is recorded, and it is never called the reference."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from niah.kv.preset import KVPreset


def _make() -> KVConfig:
    return KVConfig("auto", Plain("auto"), Plain("auto"))


PLUGIN = KVPreset("auto", "left to the engine, usually the model's 16-bit type; counted as 2 bytes an element", _make)
