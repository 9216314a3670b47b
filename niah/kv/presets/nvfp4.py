"""4-bit floats with an fp8 scale per group of 16, NVIDIA's format."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.preset import KVPreset
from niah.kv.vllm_formats import Nvfp4


def _make() -> KVConfig:
    return KVConfig("nvfp4", Nvfp4("nvfp4"), Nvfp4("nvfp4"))


PLUGIN = KVPreset("nvfp4", "vLLM on a GPU: 4-bit floats (E2M1), one fp8 scale per 16 elements along head_dim", _make)
