"""KV heads of a checkpoint merged by mean pooling, as the GQA paper (arXiv:2305.13245, 2.1) does before up-training.

Query heads keep their order, so the heads that shared a KV head before, and those that share a merged one, are
neighbors. Without the up-training of the paper answers get worse; the bytes are those of a trained GQA model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from niah.backends.transformers.method import ModelChange, Setting
from niah.errors import BackendUnavailable
from niah.kv.config import KVConfig


def mean_pooled(projection: torch.nn.Linear, head_dim: int, kv_heads: int) -> torch.nn.Linear:
    """``projection`` to ``[heads · head_dim]`` with each run of heads averaged, to ``[kv_heads · head_dim]``."""
    merged = torch.nn.Linear(
        projection.in_features,
        kv_heads * head_dim,
        bias=projection.bias is not None,
        device=projection.weight.device,
        dtype=projection.weight.dtype,
    )
    for name, whole in projection.named_parameters():
        grouped = whole.detach().float().view(kv_heads, -1, head_dim, *whole.shape[1:])
        merged.get_parameter(name).data.copy_(grouped.mean(1).flatten(0, 1))
    return merged.requires_grad_(requires_grad=False)


@contextmanager
def merged_heads(setting: Setting) -> Iterator[dict[str, Any]]:
    """The model with ``kv.kv_heads`` KV heads in every layer, and as it was afterwards.

    Raises:
        BackendUnavailable: keys and values are not projected by layers of their own.
    """
    kv_heads, model = setting.kv.kv_heads or 1, setting.loaded.model
    attentions = [m for m in model.modules() if hasattr(m, "k_proj") and hasattr(m, "v_proj")]
    if len(attentions) != len(setting.shape.layers):
        raise BackendUnavailable(
            f"{setting.kv.name}: {type(model).__name__} does not project keys and values in layers of their own, "
            "so its KV heads cannot be merged."
        )
    before: list[tuple[Any, Any, Any, Any]] = []
    try:
        for module, layer in zip(attentions, setting.shape.layers, strict=True):
            before.append((module, module.k_proj, module.v_proj, module.num_key_value_groups))
            module.num_key_value_groups = module.num_key_value_groups * layer.kv_heads // kv_heads
            module.k_proj = mean_pooled(module.k_proj, layer.k_dim, kv_heads)
            module.v_proj = mean_pooled(module.v_proj, layer.v_dim, kv_heads)
        own = ",".join(str(heads) for heads in setting.shape.kv_heads)
        yield {"kv.heads": f"{own} merged to {kv_heads} by mean pooling, not up-trained"}
    finally:
        for module, keys, values, groups in before:
            module.k_proj, module.v_proj, module.num_key_value_groups = keys, values, groups


def _applies(kv: KVConfig) -> bool:
    return kv.kv_heads is not None


PLUGIN = ModelChange("merged-heads", "KV heads of the checkpoint merged by mean pooling", _applies, merged_heads)
