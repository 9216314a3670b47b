"""TurboQuant: fp8 keys, 4-bit values."""

from __future__ import annotations

from niah.kv.families.turboquant import turboquant_preset

PLUGIN = turboquant_preset(
    "tq-k8v4", "turboquant_k8v4", "fp8_e4m3", "int4", "vLLM's TurboQuant on a GPU: fp8 keys, 4-bit values"
)
