"""llama.cpp's block type q4_1: 4-bit integers with an fp16 scale and minimum."""

from __future__ import annotations

from niah.kv.families.llama import block_preset

PLUGIN = block_preset("q4_1", "4-bit integers with an fp16 scale and minimum")
