"""Infini-attention: a local segment and a compressive memory of constant size."""

from __future__ import annotations

from niah.errors import ConfigError
from niah.kv.config import KVConfig, KVPreset

UPDATES = ("delta", "linear")


def _make(segment: int, gate: float, update: str) -> KVConfig:
    if update not in UPDATES:
        raise ConfigError(f"infini: update is {update!r}; give one of {', '.join(UPDATES)}.")
    if not 0 <= gate <= 1:
        raise ConfigError(f"infini: gate is {gate:g}; give a share from 0 (local only) to 1 (memory only).")
    return KVConfig("infini", memory="infini", segment=segment, memory_gate=gate, memory_update=update)


PLUGIN = KVPreset(
    "infini",
    "a local segment, and a compressive memory of constant size; mechanism and memory, not trained",
    _make,
    # the paper's gate starts at sigmoid(0)
    {"segment": None, "gate": 0.5, "update": "delta"},
    paper="arXiv:2404.07143",
    example="infini(512)",
)
