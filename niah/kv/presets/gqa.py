"""Grouped-query attention made from a checkpoint: KV heads merged by mean pooling, without the up-training."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.preset import KVPreset


def _make(kv_heads: int) -> KVConfig:
    return KVConfig("gqa", kv_heads=kv_heads)


PLUGIN = KVPreset(
    "gqa",
    "KV heads of the checkpoint mean-pooled to kv_heads, 16 bit; not up-trained, so answers suffer",
    _make,
    {"kv_heads": None},
    paper="arXiv:2305.13245",
    example="gqa(1)",
)
