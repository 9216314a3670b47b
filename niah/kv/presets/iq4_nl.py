"""llama.cpp's block type iq4_nl: 4-bit codes of a table that is not linear, with an fp16 scale."""

from __future__ import annotations

from niah.kv.families.llama import block_preset

PLUGIN = block_preset("iq4_nl", "4-bit codes of a table that is not linear, with an fp16 scale")
