"""8-bit keys and 4-bit values: keys lose more by rounding, since their errors pass through the softmax."""

from __future__ import annotations

from niah.errors import ConfigError
from niah.kv.config import KVConfig, KVPreset

# as int4 has it, so that k8v4 against int4 shows what the keys lose
GROUP_SIZE = 32


def _make(group_size: int) -> KVConfig:
    if group_size < 2 or group_size % 2:
        raise ConfigError(f"k8v4 packs two values to a byte: group_size {group_size} must be even, for instance 32.")
    return KVConfig("k8v4", "int8", "int4", granularity="group_token", group_size=group_size, symmetric=False)


PLUGIN = KVPreset(
    "k8v4",
    "keys in 8-bit integers (one fp32 scale per token and head), values in 4-bit ones (groups along head_dim)",
    _make,
    {"group_size": GROUP_SIZE},
    paper="arXiv:2502.15075",
)
