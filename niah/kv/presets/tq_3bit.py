"""TurboQuant: 3-bit keys and values."""

from __future__ import annotations

from niah.kv.families.turboquant import turboquant_preset

PLUGIN = turboquant_preset(
    "tq-3bit", "turboquant_3bit_nc", "int3", "int3", "vLLM's TurboQuant on a GPU: 3-bit keys and values"
)
