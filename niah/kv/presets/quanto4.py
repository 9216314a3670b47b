"""transformers' own QuantizedCache with the package optimum-quanto, in 4 bits."""

from __future__ import annotations

from niah.kv.config import KVConfig, KVPreset
from niah.kv.families.library import library_setting


def _make(group_size: int) -> KVConfig:
    return library_setting("quanto4", "quanto", 4, group_size)


PLUGIN = KVPreset(
    "quanto4",
    "transformers' QuantizedCache with optimum-quanto, 4 bits; the prompt is attended to before it is quantised",
    _make,
    {"group_size": 64},
    paper="https://github.com/huggingface/optimum-quanto",
)
