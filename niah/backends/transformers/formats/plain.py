"""Unquantized storage: bf16, fp16 or fp32 elements, whatever dtype the model computes in."""

from __future__ import annotations

import torch

from niah.backends.transformers.cache.layer import DTYPES, CacheFormat, Codec
from niah.backends.transformers.support import FORMATS
from niah.kv.formats import Plain


class PlainCodec:
    """Stores elements in one float dtype; reading in the same dtype is a view, not a copy."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.element = next(name for name, known in DTYPES.items() if known == dtype)

    def encode(self, states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (states.to(self.dtype),)

    def decode(self, parts: tuple[torch.Tensor, ...], dtype: torch.dtype) -> torch.Tensor:
        return parts[0].to(dtype)


def _codec(stored: Plain) -> Codec:
    return PlainCodec(DTYPES[stored.element])


PLUGIN = CacheFormat("plain", "unquantized elements of 16 or 32 bit", FORMATS["plain"], codec=_codec)
