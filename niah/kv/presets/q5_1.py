"""llama.cpp's block type q5_1: 5-bit integers with an fp16 scale and minimum."""

from __future__ import annotations

from niah.kv.families.llama import block_preset

PLUGIN = block_preset("q5_1", "5-bit integers with an fp16 scale and minimum")
