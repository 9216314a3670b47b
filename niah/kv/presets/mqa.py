"""Multi-query attention made from a checkpoint: all KV heads merged to one by mean pooling."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.preset import KVPreset


def _make() -> KVConfig:
    return KVConfig("mqa", kv_heads=1)


PLUGIN = KVPreset(
    "mqa",
    "all KV heads of the checkpoint mean-pooled to one, 16 bit; not up-trained, so answers suffer",
    _make,
    paper="arXiv:1911.02150",
)
