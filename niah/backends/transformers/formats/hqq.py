"""hqq, as transformers' QuantizedCache uses it: groups along head_dim, fitted scale and zero point in 16 bit."""

from __future__ import annotations

from typing import Any

import torch
from transformers import cache_utils

from niah.backends.transformers.cache.layer import CacheFormat, Side
from niah.backends.transformers.cache.library import LibrarySide
from niah.backends.transformers.formats.plain import DTYPES
from niah.backends.transformers.stored import HQQ
from niah.kv.config import ELEMENT_BITS, KVConfig
from niah.kv.memory.library import quantised_tokens

# groups of neighbours along head_dim, per token; axis 0 would mix tokens and heads by an accident of their number
_AXIS = 1


class _HQQ:
    def __init__(self, kv: KVConfig, bits: int) -> None:
        self._kv, self._bits = kv, bits
        self._layer = cache_utils.HQQQuantizedLayer(
            nbits=bits, axis_key=_AXIS, axis_value=_AXIS, q_group_size=kv.group_size
        )

    def quantise(self, states: torch.Tensor) -> Any:
        if not self._layer.is_initialized:
            self._layer.lazy_initialization(states[:, :, :0], states[:, :, :0])
        return self._layer._quantize(states, axis=_AXIS)  # noqa: SLF001

    def restore(self, quantised: Any) -> torch.Tensor:
        states: torch.Tensor = self._layer._dequantize(quantised)  # noqa: SLF001
        return states

    def tensors(self, quantised: Any) -> tuple[torch.Tensor, ...]:
        payload, meta = quantised
        return payload, meta["scale"], meta["zero"]

    def whole(self, states: torch.Tensor) -> int:
        return quantised_tokens(self._kv, self._bits, states.shape[1] * states.shape[3], states.shape[2])


def _side(kv: KVConfig, side: str, sixteen_bit: str) -> Side:
    element = kv.k_dtype if side == "k" else kv.v_dtype
    return LibrarySide(_HQQ(kv, ELEMENT_BITS[element]), element, DTYPES[sixteen_bit])


PLUGIN = CacheFormat("hqq", "hqq in transformers' QuantizedCache", HQQ, side=_side)
