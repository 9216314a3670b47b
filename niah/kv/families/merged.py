"""What ``gqa`` and ``mqa`` have in common."""

from __future__ import annotations

from niah.kv.config import KVConfig

PAPER_GQA = "arXiv:2305.13245"
PAPER_MQA = "arXiv:1911.02150"


def merged(name: str, kv_heads: int) -> KVConfig:
    """A 16-bit cache of a checkpoint whose KV heads are mean-pooled to ``kv_heads``."""
    return KVConfig(name, kv_heads=kv_heads)
