"""Every layer limited to the newest tokens."""

from __future__ import annotations

from niah.kv.config import KVConfig, Window
from niah.kv.preset import KVPreset


def _make(size: int) -> KVConfig:
    return KVConfig("window", tokens=Window(size))


PLUGIN = KVPreset(
    "window",
    "every layer keeps only the newest size tokens, 16 bit",
    _make,
    {"size": None},
    paper="arXiv:2004.05150",
    example="window(512)",
)
