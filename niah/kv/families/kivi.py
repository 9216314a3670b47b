"""What the two KIVI presets have in common: groups, and a residual that is a multiple of them."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.formats import KiviKeys, KiviValues
from niah.kv.preset import KVPreset

GROUP_SIZE = 32
RESIDUAL = 128


def kivi_preset(bits: int) -> KVPreset:
    """The preset of ``bits`` (2 or 4): whole residuals of keys are quantized, values as soon as they leave theirs."""
    name, element = f"kivi{bits}", f"int{bits}"

    def make(group_size: int, residual: int) -> KVConfig:
        keys, values = KiviKeys(element, group_size), KiviValues(element, group_size)
        return KVConfig(name, keys, values, residual=residual)

    summary = f"{bits}-bit integers, keys per channel in groups of tokens, values per token; newest tokens in 16 bit"
    return KVPreset(
        name, summary, make, {"group_size": GROUP_SIZE, "residual": RESIDUAL}, paper="KIVI, arXiv:2402.02750"
    )
