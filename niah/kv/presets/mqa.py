"""Multi-query attention made from a checkpoint: all KV heads merged to one by mean pooling."""

from __future__ import annotations

from niah.kv.config import KVConfig, KVPreset
from niah.kv.families.merged import PAPER_MQA, merged


def _make() -> KVConfig:
    return merged("mqa", 1)


PLUGIN = KVPreset(
    "mqa",
    "all KV heads of the checkpoint mean-pooled to one, 16 bit; not up-trained, so answers suffer",
    _make,
    paper=PAPER_MQA,
)
