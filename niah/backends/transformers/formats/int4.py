"""int4 storage: 4-bit integers per token, in groups along head_dim, each with an fp16 scale and an fp16 minimum."""

from __future__ import annotations

import torch

from niah.backends.transformers.cache.layer import CacheFormat, Codec
from niah.backends.transformers.cache.packing import pack, quantize, restore, unpack
from niah.backends.transformers.support import FORMATS
from niah.kv.formats import Grouped


class TokenGroups:
    """Parts: uint8 payload ``[…, head_dim · bits / 8]``, fp16 scales and fp16 minima ``[…, head_dim / group]``."""

    def __init__(self, bits: int, group_size: int) -> None:
        self.bits, self.group_size = bits, group_size
        self.element = f"int{bits}"

    def encode(self, states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        head_dim, packed = states.shape[-1], 8 // self.bits
        if head_dim % self.group_size or self.group_size % packed:
            raise ValueError(
                f"group size {self.group_size} must be a multiple of {packed} and divide the head size {head_dim}"
            )
        codes, scale, low = quantize(self._grouped(states.float()), -1, self.bits)
        return pack(codes.flatten(-2), self.bits), scale.squeeze(-1), low.squeeze(-1)

    def _grouped(self, states: torch.Tensor) -> torch.Tensor:
        return states.reshape(*states.shape[:-1], -1, self.group_size)

    def decode(self, parts: tuple[torch.Tensor, ...], dtype: torch.dtype) -> torch.Tensor:
        packed, scale, low = parts
        codes = self._grouped(unpack(packed, self.bits))
        return restore(codes, scale.unsqueeze(-1), low.unsqueeze(-1)).flatten(-2).to(dtype)


def _codec(stored: Grouped) -> Codec:
    return TokenGroups(stored.bits, stored.group_size)


PLUGIN = CacheFormat("int4", "4-bit integers in groups along head_dim", FORMATS["int4"], codec=_codec)
