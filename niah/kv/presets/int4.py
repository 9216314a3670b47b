"""4-bit integers in groups along head_dim, with scale and zero point per group."""

from __future__ import annotations

from niah.errors import ConfigError
from niah.kv.config import KVConfig, KVPreset

GROUP_SIZE = 32


def _make(group_size: int) -> KVConfig:
    if group_size < 2 or group_size % 2:
        raise ConfigError(f"int4 packs two elements to a byte: group_size {group_size} must be even, for instance 32.")
    return KVConfig("int4", "int4", "int4", granularity="group_token", group_size=group_size, symmetric=False)


PLUGIN = KVPreset(
    "int4",
    "4-bit integers, fp16 scale and zero point per group of group_size along head_dim",
    _make,
    {"group_size": GROUP_SIZE},
)
