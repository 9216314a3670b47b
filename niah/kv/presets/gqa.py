"""Grouped-query attention made from a checkpoint: KV heads merged by mean pooling, without the up-training."""

from __future__ import annotations

from niah.kv.config import KVConfig, KVPreset
from niah.kv.families.merged import PAPER_GQA, merged


def _make(kv_heads: int) -> KVConfig:
    return merged("gqa", kv_heads)


PLUGIN = KVPreset(
    "gqa",
    "KV heads of the checkpoint mean-pooled to kv_heads, 16 bit; not up-trained, so answers suffer",
    _make,
    {"kv_heads": None},
    paper=PAPER_GQA,
    example="gqa(1)",
)
