"""llama.cpp's names of the cache types that niah can ask for."""

from __future__ import annotations

from niah.engines.support import UNQUANTIZED, Support
from niah.kv.formats import BLOCK_SCALE_BYTES

# our element type -> the engine's (ggml_type without its prefix); "auto" is what it keeps when it is not told
WORDS = {
    "auto": "F16",
    "fp32": "F32",
    "fp16": "F16",
    "bf16": "BF16",
    **{name: name.upper() for name in BLOCK_SCALE_BYTES},
}
SUPPORT = Support(formats=UNQUANTIZED | {(name, "block") for name in BLOCK_SCALE_BYTES})
