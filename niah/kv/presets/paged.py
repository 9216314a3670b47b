"""The cache in blocks of a fixed number of tokens: a part of a setting, ``int8+paged(block_size=16)``."""

from __future__ import annotations

from niah.kv.config import KVConfig, Placement
from niah.kv.preset import KVPreset

# vLLM's size on a GPU; on a CPU it is 128
BLOCK_SIZE = 16


def _make(block_size: int) -> KVConfig:
    return KVConfig("paged", placement=Placement(block_size=block_size))


PLUGIN = KVPreset(
    "paged",
    "blocks of block_size tokens, in 16 bit or as part of a setting (int8+paged); one block a sequence may be unfilled",
    _make,
    {"block_size": BLOCK_SIZE},
    paper="PagedAttention, arXiv:2309.06180",
)
