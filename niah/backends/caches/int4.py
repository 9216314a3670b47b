"""4-bit storage per token, in groups along head_dim, two elements to a byte, with fp16 scale and fp16 minimum.

Asymmetric: ``q = round((x − min) / scale)`` with ``scale = (max − min) / 15``; the scale and minimum that divide are
the fp16 ones that are stored, so that decoding undoes exactly what encoding did.
"""

from __future__ import annotations

import torch

from niah.backends.caches.base import CachePlugin, Codec
from niah.kv.base import KVConfig

LEVELS = 15
# the smallest normal fp16: below it a scale would lose bits or become zero
MIN_SCALE = 6.104e-5


class Int4Group:
    """Parts: uint8 payload ``[…, head_dim / 2]``, fp16 scales and fp16 minima ``[…, head_dim / group]``."""

    element = "int4"

    def __init__(self, group_size: int) -> None:
        self.group_size = group_size

    def encode(self, states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        head_dim = states.shape[-1]
        if head_dim % self.group_size or self.group_size % 2:
            raise ValueError(f"group size {self.group_size} must be even and divide the head size {head_dim}")
        groups = self._grouped(states.float())
        low, high = groups.aminmax(dim=-1, keepdim=True)
        low = low.half().float()
        scale = ((high - low) / LEVELS).clamp_min(MIN_SCALE).half().float()
        codes = ((groups - low) / scale).round_().clamp_(0, LEVELS).to(torch.uint8).flatten(-2)
        packed = codes[..., 0::2] | (codes[..., 1::2] << 4)
        return packed, scale.squeeze(-1).half(), low.squeeze(-1).half()

    def _grouped(self, states: torch.Tensor) -> torch.Tensor:
        return states.reshape(*states.shape[:-1], -1, self.group_size)

    def decode(self, parts: tuple[torch.Tensor, ...], dtype: torch.dtype) -> torch.Tensor:
        packed, scale, low = parts
        codes = torch.stack((packed & 15, packed >> 4), dim=-1).flatten(-2)
        groups = self._grouped(codes.float())
        return groups.mul_(scale.float().unsqueeze(-1)).add_(low.float().unsqueeze(-1)).flatten(-2).to(dtype)


def _codec(kv: KVConfig, side: str) -> Codec:
    granularity = kv.granularity
    if granularity != "group_token" or kv.group_size is None:
        raise ValueError(f"int4 {side} storage needs groups along head_dim, not {granularity!r}")
    return Int4Group(kv.group_size)


CACHE = CachePlugin(dtypes=frozenset({"int4"}), codec=_codec)
