"""What llama.cpp's KV presets have in common: its block types, for keys and values alike or apart."""

from __future__ import annotations

from niah.errors import ConfigError, near
from niah.kv.config import KVConfig
from niah.kv.formats import BLOCK_SCALE_BYTES, Block, Format, Plain
from niah.kv.preset import KVPreset

# llama.cpp's own words for types that have another name here
_WORDS = {"f16": "fp16", "f32": "fp32"}
TYPES = ("fp32", "fp16", "bf16", *BLOCK_SCALE_BYTES)


def block_format(text: str) -> Format:
    """How llama.cpp stores one side, by our name of its element type or llama.cpp's.

    Raises:
        ConfigError: llama.cpp's cache has no such type.
    """
    name = _WORDS.get(text.lower(), text.lower())
    if name not in TYPES:
        raise ConfigError(f"llama.cpp keeps no cache of type {text!r}.{near(text, [*TYPES, *_WORDS])}")
    return Block(name) if name in BLOCK_SCALE_BYTES else Plain(name)


def block_preset(dtype: str, layout: str) -> KVPreset:
    """The preset of one block type for keys and values; ``v`` gives the values another type."""

    def make(v: str) -> KVConfig:
        return KVConfig(dtype, block_format(dtype), block_format(v))

    summary = f"llama.cpp {dtype}: {layout}, {Block(dtype).block_bytes} bytes per 32 elements"
    return KVPreset(dtype, summary, make, {"v": dtype})
