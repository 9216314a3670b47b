"""What llama.cpp's KV presets have in common: its block types, for keys and values alike or apart."""

from __future__ import annotations

from niah.errors import ConfigError, near
from niah.kv.config import BLOCK_SCALE_BYTES, KVConfig, KVPreset, block_bytes

# llama.cpp's own words for types that have another name here
_WORDS = {"f16": "fp16", "f32": "fp32"}
TYPES = ("fp32", "fp16", "bf16", *BLOCK_SCALE_BYTES)


def block_type(text: str) -> str:
    """The element type of one side, by our name or llama.cpp's.

    Raises:
        ConfigError: llama.cpp's cache has no such type.
    """
    name = _WORDS.get(text.lower(), text.lower())
    if name not in TYPES:
        raise ConfigError(f"llama.cpp keeps no cache of type {text!r}.{near(text, [*TYPES, *_WORDS])}")
    return name


def block_config(name: str, keys: str, values: str) -> KVConfig:
    """A setting whose keys and values have each a type of their own."""
    k_dtype, v_dtype = block_type(keys), block_type(values)
    blocks = k_dtype in BLOCK_SCALE_BYTES or v_dtype in BLOCK_SCALE_BYTES
    # the _1 types keep a minimum beside the scale
    symmetric = not {"q5_1", "q4_1"} & {k_dtype, v_dtype}
    return KVConfig(name, k_dtype, v_dtype, granularity="block" if blocks else "none", symmetric=symmetric)


def block_preset(dtype: str, layout: str) -> KVPreset:
    """The preset of one block type for keys and values; ``v`` gives the values another type."""

    def make(v: str) -> KVConfig:
        return block_config(dtype, dtype, v)

    summary = f"llama.cpp {dtype}: {layout}, {block_bytes(dtype)} bytes per 32 elements"
    return KVPreset(dtype, summary, make, {"v": dtype})
