"""llama.cpp's block type q8_0: 8-bit integers with an fp16 scale."""

from __future__ import annotations

from niah.kv.families.llama import block_preset

PLUGIN = block_preset("q8_0", "8-bit integers with an fp16 scale")
