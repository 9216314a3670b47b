"""fp8 storage with scale 1.0, as engines without calibrated scales, or with one scale per token and head.

Unit scale is what vLLM does with ``fp8`` and no scales in the checkpoint; values beyond the largest number saturate.
The dynamic scale is ``max(absmax / largest, 1e-6)`` in fp32, as vLLM's ``fp8_per_token_head``
(vLLM 0.32, ``v1/attention/ops/triton_reshape_and_cache_flash.py``). Rounding is to the nearest, as GPUs do it; the CPU
kernel of vLLM rounds towards zero, which ``rounding=zero`` does too.
"""

from __future__ import annotations

import torch

from niah.backends.transformers.cache.layer import CacheFormat, Codec
from niah.backends.transformers.support import FORMATS
from niah.kv.formats import TensorScale, TokenHead

MIN_SCALE = 1e-6
DTYPES = {"fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}


class Fp8:
    """Parts: fp8 payload ``[…, head_dim]``, and an fp32 scale ``[…, 1]`` where scales are dynamic."""

    def __init__(self, element: str, *, dynamic: bool, rounding: str = "nearest") -> None:
        self.element, self.dynamic, self.rounding = element, dynamic, rounding
        self.dtype = DTYPES[element]
        self.largest = torch.finfo(self.dtype).max
        self._table: torch.Tensor | None = None

    def encode(self, states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if not self.dynamic:
            return (self._rounded(states),)
        values = states.float()
        scale = (values.abs().amax(dim=-1, keepdim=True) / self.largest).clamp_min(MIN_SCALE)
        return self._rounded(values / scale), scale

    def _rounded(self, states: torch.Tensor) -> torch.Tensor:
        # without the clamp e4m3 turns into NaN above 448 and e5m2 into infinity above 57,344
        nearest = states.clamp(-self.largest, self.largest).to(self.dtype)
        return nearest if self.rounding == "nearest" else self._towards_zero(nearest, states)

    def _towards_zero(self, nearest: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """One code less where rounding went up: the codes of a sign ascend with the magnitude."""
        codes = nearest.view(torch.uint8)
        went_up = self._wide(nearest, torch.float32).abs() > states.float().abs()
        return (codes - went_up.to(torch.uint8)).view(self.dtype)

    def decode(self, parts: tuple[torch.Tensor, ...], dtype: torch.dtype) -> torch.Tensor:
        if not self.dynamic:
            return self._wide(parts[0], dtype)
        return self._wide(parts[0], torch.float32).mul_(parts[1]).to(dtype)

    def _wide(self, payload: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if payload.device.type != "cpu":
            return payload.to(dtype)
        # a CPU converts e4m3 element by element: looking each of the 256 values up takes a sixth of the time
        if self._table is None or self._table.dtype != dtype:
            self._table = torch.arange(256, dtype=torch.uint8).view(self.dtype).to(dtype)
        codes = payload.contiguous().view(torch.uint8)
        return self._table.index_select(0, codes.flatten().int()).view(payload.shape)


def _codec(stored: TensorScale | TokenHead) -> Codec:
    return Fp8(stored.element, dynamic=isinstance(stored, TokenHead), rounding=stored.rounding)


PLUGIN = CacheFormat("fp8", "8-bit floats with unit or dynamic scales", FORMATS["fp8"], codec=_codec)
