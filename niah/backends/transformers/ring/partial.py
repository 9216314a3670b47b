"""Partial attention over some of the keys, and exact merging of the parts by log-sum-exp (arXiv:2310.01889, 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

# keys scored at a time: bounds the fp32 scores of one part
BLOCK_KEYS = 4096


@dataclass(frozen=True)
class Partial:
    """Attention's output ``[batch, heads, queries, v_dim]`` over some keys, and the log-sum-exp of their scores, fp32.

    A query that sees none of the keys has an output of 0 and a log-sum-exp of −∞.
    """

    out: torch.Tensor
    lse: torch.Tensor

    def packed(self) -> torch.Tensor:
        return torch.cat((self.out, self.lse.unsqueeze(-1)), dim=-1).contiguous()

    @staticmethod
    def unpacked(both: torch.Tensor) -> Partial:
        return Partial(both[..., :-1], both[..., -1])


def partial_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, seen: torch.Tensor, scale: float
) -> Partial:
    """Attention of ``query [b, heads, n, d]`` over ``key, value [b, kv_heads, k, *]`` where ``seen [n, k]`` is true."""
    batch, heads, count, dim = query.shape
    kv_heads = key.shape[1]
    # heads of one KV head are neighbors, so that its keys are read once for all of them
    grouped = query.float().reshape(batch, kv_heads, heads // kv_heads * count, dim)
    if not key.shape[2]:
        nothing = grouped.new_zeros(batch, heads, count, value.shape[-1])
        return Partial(nothing, torch.full_like(nothing[..., 0], -torch.inf))
    parts = []
    for first in range(0, key.shape[2], BLOCK_KEYS):
        block = slice(first, first + BLOCK_KEYS)
        scores = grouped @ key[:, :, block].float().transpose(-1, -2) * scale
        scores = scores.view(batch, heads, count, -1).masked_fill(~seen[:, block], -torch.inf)
        lse = scores.logsumexp(-1)
        # a query that sees nothing here: exp(−∞ − 0) instead of exp(−∞ + ∞)
        weights = (scores - lse.nan_to_num(neginf=0.0).unsqueeze(-1)).exp()
        weights = weights.view(batch, kv_heads, -1, weights.shape[-1])
        out = (weights @ value[:, :, block].float()).view(batch, heads, count, -1)
        parts.append(Partial(out, lse))
    return merge(parts)


def merge(parts: Sequence[Partial]) -> Partial:
    """What attention over the keys of all parts gives."""
    if len(parts) == 1:
        return parts[0]
    lse = torch.stack([part.lse for part in parts]).logsumexp(0)
    finite = lse.nan_to_num(neginf=0.0)
    out = torch.zeros_like(parts[0].out)
    for part in parts:
        out += part.out * (part.lse - finite).exp().unsqueeze(-1)
    return Partial(out, lse)
