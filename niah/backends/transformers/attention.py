"""Masked SDPA for grouped KV heads without copies: SDPA in transformers copies K and V to every query head.

For a short query that copy of the whole cache costs more than the attention itself (4,300 keys, 9 heads over 3:
6.8 ms against 2.6 ms a layer for 5 queries on one core). That is so on a CPU; fused kernels of GPUs need the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

NAME = "niah_sdpa"
METHOD_NAME = "niah_method"
# attention of a KV method, by the identity of the config of the model that it stands in
_methods: dict[int, Callable[..., Any]] = {}


def grouped_sdpa(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of ``query [b, heads, q, d]`` over ``key, value [b, kv_heads, s, d]``; returns ``[b, q, heads, d]``.

    Raises:
        ValueError: the model asks for a soft cap or learned sinks, which SDPA does not have.
    """
    if kwargs.get("softcap") is not None or kwargs.get("s_aux") is not None:
        raise ValueError("SDPA has neither logit soft caps nor learned sinks: use attn='eager'")
    heads, kv_heads = query.shape[1], key.shape[1]
    if heads != kv_heads and attention_mask is not None and query.device.type != "cpu":
        # fused kernels of GPUs take a mask or grouped heads, not both; the unfused one would hold all scores at a time
        key, value = (states.repeat_interleave(heads // kv_heads, dim=1) for states in (key, value))
    causal = attention_mask is None and query.shape[2] > 1 and getattr(module, "is_causal", True)
    out = scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        dropout_p=dropout,
        scale=scaling,
        is_causal=causal,
        enable_gqa=heads != key.shape[1],
    )
    return out.transpose(1, 2).contiguous(), None


def register() -> str:
    """Make the function known to transformers under ``NAME``, with SDPA's masks; returns the name."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, grouped_sdpa)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME


def _by_method(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    return _methods[id(module.config)](module, *args, **kwargs)


def _no_mask(*_args: Any, **_kwargs: Any) -> None:
    """No mask: a method decides itself what each token may see."""


@contextmanager
def attention_method(model: Any, attend: Callable[..., Any]) -> Iterator[None]:
    """Replace the model's attention by ``attend`` within the block.

    ``attend(module, query, key, value, mask, *, scaling, **rest)`` takes and returns what ``grouped_sdpa`` does.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(METHOD_NAME, _by_method)
    AttentionMaskInterface.register(METHOD_NAME, _no_mask)
    config = model.config.get_text_config()
    before = config._attn_implementation  # noqa: SLF001
    _methods[id(config)] = attend
    config._attn_implementation = METHOD_NAME  # noqa: SLF001
    try:
        yield
    finally:
        config._attn_implementation = before  # noqa: SLF001
        del _methods[id(config)]
