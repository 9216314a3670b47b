"""What transformers' own caches hold for a model class, seen on tensors without storage."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

TOKENS = 16


@dataclass(frozen=True)
class Kept:
    """One layer: elements of K and V, the window of its cache, and bytes of a constant state."""

    kv_heads: int = 0
    k_dim: int = 0
    v_dim: int = 0
    window: int | None = None
    state_bytes: int = 0


def library_layers(model_type: str, **changes: Any) -> tuple[dict[str, Any], list[Kept]]:
    """(the class's config, what each layer of the library's cache holds after ``TOKENS`` tokens)."""
    config = CONFIG_MAPPING[model_type](**changes)
    with torch.device("meta"), torch.no_grad():
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
        out = model(input_ids=torch.zeros((1, TOKENS), dtype=torch.long), use_cache=True)
    return config.to_dict(), [_kept(layer) for layer in out.past_key_values.layers]


def _kept(layer: Any) -> Kept:
    states = [*getattr(layer, "conv_states", {}).values(), *getattr(layer, "recurrent_states", {}).values()]
    size = sum(prod(state.shape) * state.element_size() for state in states if isinstance(state, torch.Tensor))
    keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
    if keys is None or not keys.numel():
        return Kept(state_bytes=size)
    assert values is not None
    assert keys.shape[2] == TOKENS, f"{keys.shape[2]} tokens kept of {TOKENS}"
    return Kept(keys.shape[1], keys.shape[3], values.shape[3], getattr(layer, "sliding_window", None), size)
