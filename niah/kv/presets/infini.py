"""Infini-attention: a local segment and a compressive memory of constant size."""

from __future__ import annotations

from typing import get_args

from niah.errors import ConfigError
from niah.kv.config import Infini, KVConfig, Update
from niah.kv.preset import KVPreset

UPDATES = get_args(Update)


def _make(segment: int, gate: float, update: Update) -> KVConfig:
    if update not in UPDATES:
        raise ConfigError(f"infini: update is {update!r}; give one of {', '.join(UPDATES)}.")
    if not 0 <= gate <= 1:
        raise ConfigError(f"infini: gate is {gate:g}; give a share from 0 (local only) to 1 (memory only).")
    return KVConfig("infini", memory=Infini(segment, gate, update))


PLUGIN = KVPreset(
    "infini",
    "a local segment, and a compressive memory of constant size; mechanism and memory, not trained",
    _make,
    # the paper's gate starts at sigmoid(0)
    {"segment": None, "gate": 0.5, "update": "delta"},
    paper="arXiv:2404.07143",
    example="infini(512)",
)
