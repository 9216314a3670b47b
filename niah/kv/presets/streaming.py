"""StreamingLLM: the first tokens as attention sinks and the newest ones, the middle is gone."""

from __future__ import annotations

from typing import get_args

from niah.errors import ConfigError
from niah.kv.config import KVConfig, Positions, Window
from niah.kv.preset import KVPreset

POSITIONS = get_args(Positions)


def _make(sinks: int, window: int, positions: Positions) -> KVConfig:
    if positions not in POSITIONS:
        raise ConfigError(f"streaming: positions is {positions!r}; give one of {', '.join(POSITIONS)}.")
    return KVConfig("streaming", tokens=Window(window, sinks, positions))


PLUGIN = KVPreset(
    "streaming",
    "the first sinks tokens and the newest window ones, positions counted inside the cache (or original)",
    _make,
    {"sinks": 4, "window": None, "positions": "in_cache"},
    paper="arXiv:2309.17453",
    example="streaming(sinks=4,window=512)",
)
