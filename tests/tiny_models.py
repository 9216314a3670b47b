"""Random models small enough for a unit test, in the shapes that matter: grouped heads, windows, MQA."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from niah.backends._attention import register
from niah.backends._hf_load import Loaded, ready
from niah.kv.shape import ModelShape

VOCABULARY = 97


def _common(**more: Any) -> dict[str, Any]:
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 96,
        "intermediate_size": 96,
        "max_position_embeddings": 512,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "attn_implementation": register(),
        **more,
    }


def llama(dtype: torch.dtype = torch.float32) -> Loaded:
    """4 layers, 6 heads over 2 KV heads of 32."""
    config = LlamaConfig(**_common(num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, head_dim=32))
    return _ready(LlamaForCausalLM, config, dtype)


def mistral() -> Loaded:
    """Every layer with a window of 24."""
    config = MistralConfig(
        **_common(num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=32, sliding_window=24)
    )
    return _ready(MistralForCausalLM, config, torch.float32)


def gemma3() -> Loaded:
    """One KV head; two window layers of 24 for each full one."""
    config = Gemma3TextConfig(
        **_common(
            num_hidden_layers=6,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=32,
            sliding_window=24,
            layer_types=["sliding_attention", "sliding_attention", "full_attention"] * 2,
        )
    )
    return _ready(Gemma3ForCausalLM, config, torch.float32)


def _ready(kind: Any, config: Any, dtype: torch.dtype) -> Loaded:
    torch.manual_seed(7)
    model = kind(config)
    # random weights of the usual size give almost equal logits everywhere; larger ones make decoding depend on context
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and "embed" not in name:
                parameter.mul_(6.0)
    return ready(model.to(dtype).eval(), register())


def shape_of(loaded: Loaded) -> ModelShape:
    return ModelShape.from_config(loaded.model.config.to_dict(), name="tiny")


ALL = {"llama": llama, "mistral": mistral, "gemma3": gemma3}
