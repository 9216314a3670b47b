"""What the two KIVI presets have in common: groups, and a residual that is a multiple of them."""

from __future__ import annotations

from niah.errors import ConfigError
from niah.kv.config import KVConfig, KVPreset

GROUP_SIZE = 32
RESIDUAL = 128


def kivi_preset(bits: int) -> KVPreset:
    """The preset of ``bits`` (2 or 4): whole residuals of keys are quantised, values as soon as they leave theirs."""
    name, packed = f"kivi{bits}", 8 // bits

    def make(group_size: int, residual: int) -> KVConfig:
        if group_size < packed or group_size % packed:
            raise ConfigError(
                f"{name} packs {packed} elements to a byte: group_size {group_size} must be a multiple of {packed}, "
                "for instance 32."
            )
        if residual < 1 or residual % group_size:
            raise ConfigError(
                f"{name} quantises keys {group_size} tokens at a time, so the residual {residual} must be a positive "
                f"multiple of {group_size}, for instance {group_size * 4}."
            )
        dtype = f"int{bits}"
        return KVConfig(
            name, dtype, dtype, granularity="kivi", group_size=group_size, symmetric=False, residual=residual
        )

    summary = f"{bits}-bit integers, keys per channel in groups of tokens, values per token; newest tokens in 16 bit"
    return KVPreset(
        name, summary, make, {"group_size": GROUP_SIZE, "residual": RESIDUAL}, paper="KIVI, arXiv:2402.02750"
    )
