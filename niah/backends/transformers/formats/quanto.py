"""optimum-quanto storage as in transformers' QuantizedCache: groups along head_dim, scale and shift in 16 bit."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
from transformers import cache_utils

from niah.backends.transformers.cache.layer import CacheFormat, Side
from niah.backends.transformers.cache.packaged import PackagedSide
from niah.backends.transformers.cache.packing import unpack
from niah.backends.transformers.support import FORMATS
from niah.kv.formats import Quanto

# groups of neighbours along head_dim, per token; transformers' default
_AXIS = 0


class _Quanto:
    def __init__(self, bits: int, group_size: int) -> None:
        _use_torch_unpacking()
        self._layer = cache_utils.QuantoQuantizedLayer(
            nbits=bits, axis_key=_AXIS, axis_value=_AXIS, q_group_size=group_size
        )

    def quantize(self, states: torch.Tensor) -> Any:
        return self._layer._quantize(states, axis=_AXIS)  # noqa: SLF001

    def restore(self, quantized: Any) -> torch.Tensor:
        states: torch.Tensor = self._layer._dequantize(quantized)  # noqa: SLF001
        return states

    def tensors(self, quantized: Any) -> tuple[torch.Tensor, ...]:
        # wrapper tensors give the shape of what they stand for; what they consist of is named by themselves
        if not hasattr(quantized, "__tensor_flatten__"):
            return (quantized,)
        names, _ = quantized.__tensor_flatten__()
        return tuple(part for name in names for part in self.tensors(getattr(quantized, name)))

    def whole(self, states: torch.Tensor) -> int:
        return states.shape[2]


@cache
def _use_torch_unpacking() -> torch.library.Library:
    """Unpack by torch operations; returned, since the registration lasts as long as the library.

    Otherwise the package compiles an extension into its own folder on first use, which needs a compiler and a minute.
    """
    import optimum.quanto  # noqa: F401

    library = torch.library.Library("quanto", "IMPL")  # type: ignore[no-untyped-call]
    with warnings.catch_warnings():
        # torch warns that an operator is overridden, which is intended
        warnings.simplefilter("ignore", UserWarning)
        for device in ("CPU", "CUDA"):
            library.impl("unpack", _unpack, device, allow_override=True)  # type: ignore[no-untyped-call]
    return library


def _unpack(packed: torch.Tensor, bits: int) -> torch.Tensor:
    return unpack(packed, bits, dim=0)


def _side(stored: Quanto, residual: int, dtype: torch.dtype) -> Side:  # noqa: ARG001
    return PackagedSide(_Quanto(stored.bits, stored.group_size), stored.element, dtype)


PLUGIN = CacheFormat("quanto", "optimum-quanto in transformers' QuantizedCache", FORMATS["quanto"], side=_side)
