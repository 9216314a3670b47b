"""What the two fp8 presets have in common: where their scales come from."""

from __future__ import annotations

from niah.errors import ConfigError, near
from niah.kv.base import KVConfig, KVPreset

# where the scale comes from -> what shares it; engines without calibrated scales run at 1.0
_GRANULARITY = {"unit": "tensor", "checkpoint": "tensor", "dynamic": "token_head"}


def fp8_preset(dtype: str, layout: str) -> KVPreset:
    """The preset of one 8-bit float; its argument ``scales`` is unit, checkpoint or dynamic (per token and head)."""

    def make(scales: str) -> KVConfig:
        if scales not in _GRANULARITY:
            raise ConfigError(f"{dtype} has no scales {scales!r}.{near(scales, _GRANULARITY)}")
        return KVConfig(dtype, dtype, dtype, granularity=_GRANULARITY[scales], scales=scales)

    summary = f"8-bit floats ({layout}), unit scale; scales=dynamic gives one per token and KV head"
    return KVPreset(dtype, summary, make, {"scales": "unit"}, paper="arXiv:2209.05433")
