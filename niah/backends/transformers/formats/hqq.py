"""hqq storage as in transformers' QuantizedCache: groups along head_dim, fitted scale and zero point in 16 bit."""

from __future__ import annotations

from typing import Any

import torch
from transformers import cache_utils

from niah.backends.transformers.cache.layer import CacheFormat, Side
from niah.backends.transformers.cache.packaged import PackagedSide
from niah.backends.transformers.support import FORMATS
from niah.kv.formats import Hqq

# groups of neighbours along head_dim, per token; with axis 0 groups would span tokens and heads
_AXIS = 1


class _HQQ:
    def __init__(self, stored: Hqq) -> None:
        self._stored = stored
        self._layer = cache_utils.HQQQuantizedLayer(
            nbits=stored.bits, axis_key=_AXIS, axis_value=_AXIS, q_group_size=stored.group_size
        )

    def quantize(self, states: torch.Tensor) -> Any:
        if not self._layer.is_initialized:
            self._layer.lazy_initialization(states[:, :, :0], states[:, :, :0])
        return self._layer._quantize(states, axis=_AXIS)  # noqa: SLF001

    def restore(self, quantized: Any) -> torch.Tensor:
        states: torch.Tensor = self._layer._dequantize(quantized)  # noqa: SLF001
        return states

    def tensors(self, quantized: Any) -> tuple[torch.Tensor, ...]:
        payload, meta = quantized
        return payload, meta["scale"], meta["zero"]

    def whole(self, states: torch.Tensor) -> int:
        return self._stored.quantized_tokens(states.shape[1] * states.shape[3], states.shape[2])


def _side(stored: Hqq, residual: int, dtype: torch.dtype) -> Side:  # noqa: ARG001
    return PackagedSide(_HQQ(stored), stored.element, dtype)


PLUGIN = CacheFormat("hqq", "hqq in transformers' QuantizedCache", FORMATS["hqq"], side=_side)
