"""4-bit floats with an fp8 scale per group of 16, NVIDIA's format."""

from __future__ import annotations

from niah.kv.config import KVConfig, KVPreset


def _make() -> KVConfig:
    return KVConfig("nvfp4", "nvfp4", "nvfp4", granularity="group_token", group_size=16)


PLUGIN = KVPreset("nvfp4", "vLLM on a GPU: 4-bit floats (E2M1), one fp8 scale per 16 elements along head_dim", _make)
