"""Layers left in 16 bit: a part of a setting, ``int4+skip(0,1,-1)`` or ``kivi4+skip(sliding_window)``."""

from __future__ import annotations

from niah.errors import ConfigError, near
from niah.kv.config import KVConfig, SkipLayer
from niah.kv.preset import KVPreset

WINDOW_LAYERS = "sliding_window"


def _make(*layers: SkipLayer) -> KVConfig:
    for layer in layers:
        if isinstance(layer, str) and layer != WINDOW_LAYERS:
            hint = near(layer, [WINDOW_LAYERS])
            raise ConfigError(f"skip takes layer numbers (-1 is the last) or {WINDOW_LAYERS}, not {layer!r}.{hint}")
    return KVConfig("skip", skip_layers=layers)


PLUGIN = KVPreset(
    "skip",
    "part of a setting: layers left in 16 bit by number (-1 is the last), or all sliding_window ones",
    _make,
    paper="keys of some families (Qwen2) survive 4 bits only with the first and last layers skipped",
    rest="layers",
    example="int8+skip(0,-1)",
)
