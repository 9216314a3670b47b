"""llama.cpp's block type q5_0: 5-bit integers with an fp16 scale."""

from __future__ import annotations

from niah.kv.families.llama import block_preset

PLUGIN = block_preset("q5_0", "5-bit integers with an fp16 scale")
