"""Asymmetric quantization of groups to integers with scale and minimum, and packing of 2 or 4 bits into bytes.

Asymmetric: ``q = round((x − min) / scale)`` with ``scale = (max − min) / (2^bits − 1)``; the scale and minimum that
divide are the fp16 ones that are stored, so that decoding undoes exactly what encoding did.
"""

from __future__ import annotations

import torch

# the smallest normal fp16: below it a scale would lose bits or become zero
MIN_SCALE = 6.104e-5


def quantize(groups: torch.Tensor, dim: int, bits: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(codes uint8 of the same shape, fp16 scales, fp16 minima); the latter two with size 1 along ``dim``."""
    levels = 2**bits - 1
    low, high = groups.aminmax(dim=dim, keepdim=True)
    low = low.half().float()
    scale = ((high - low) / levels).clamp_min(MIN_SCALE).half().float()
    codes = ((groups - low) / scale).round_().clamp_(0, levels).to(torch.uint8)
    return codes, scale.half(), low.half()


def restore(codes: torch.Tensor, scale: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    """fp32 of the shape of ``codes``; ``scale`` and ``low`` broadcast to it."""
    return codes.float().mul_(scale.float()).add_(low.float())


def pack(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """uint8 ``[…, n]`` below ``2^bits`` to ``[…, n · bits / 8]``.

    The last dimension is cut into 8 / bits planes that share bytes (the first plane in the lowest bits): planes unpack
    to runs, which costs half of what neighbours in one byte would.
    """
    planes = codes.chunk(8 // bits, dim=-1)
    packed = planes[0].clone()
    for i, plane in enumerate(planes[1:], start=1):
        packed |= plane << (bits * i)
    return packed


def unpack(packed: torch.Tensor, bits: int, dim: int = -1) -> torch.Tensor:
    """The inverse of ``pack``, or of the same along another dimension: uint8 ``[…, n · 8 / bits]``."""
    mask = 2**bits - 1
    planes = [packed & mask, *((packed >> shift) & mask for shift in range(bits, 8, bits))]
    return torch.cat(planes, dim=dim)
