"""TurboQuant: 4-bit keys and values."""

from __future__ import annotations

from niah.kv.families.turboquant import turboquant_preset

PLUGIN = turboquant_preset(
    "tq-4bit", "turboquant_4bit_nc", "int4", "int4", "vLLM's TurboQuant on a GPU: 4-bit keys and values"
)
