"""TurboQuant: 3-bit keys, 4-bit values."""

from __future__ import annotations

from niah.kv.families.turboquant import turboquant_preset

PLUGIN = turboquant_preset(
    "tq-k3v4", "turboquant_k3v4_nc", "int3", "int4", "vLLM's TurboQuant on a GPU: 3-bit keys, 4-bit values"
)
