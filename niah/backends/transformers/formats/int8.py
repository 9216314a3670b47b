"""int8 storage with one fp32 scale per token and head: the rounding of vLLM's ``int8_per_token_head``.

Per (token, head): ``scale = max(absmax / 127, 1e-6)`` in fp32, halves rounded away from zero, clamped to [-128, 127]
(vLLM 0.32, ``v1/attention/ops/triton_reshape_and_cache_flash.py``).
"""

from __future__ import annotations

import torch

from niah.backends.transformers.cache.layer import CacheFormat
from niah.backends.transformers.support import FORMATS

MIN_SCALE = 1e-6


class Int8TokenHead:
    """Parts: int8 payload ``[…, head_dim]`` and fp32 scale ``[…, 1]``."""

    element = "int8"

    def encode(self, states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = states.float()
        scale = (values.abs().amax(dim=-1, keepdim=True) / 127.0).clamp_min(MIN_SCALE)
        scaled = values / scale
        rounded = torch.trunc(scaled + torch.copysign(torch.full_like(scaled, 0.5), scaled))
        return rounded.clamp_(-128, 127).to(torch.int8), scale

    def decode(self, parts: tuple[torch.Tensor, ...], dtype: torch.dtype) -> torch.Tensor:
        payload, scale = parts
        return (payload.float().mul_(scale)).to(dtype)


PLUGIN = CacheFormat(
    "int8", "8-bit integers, one fp32 scale per token and head", FORMATS["int8"], codec=lambda _: Int8TokenHead()
)
