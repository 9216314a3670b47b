"""Small random models of every family that transformers has, in as many layers as show each kind once.

What a family computes shows in random weights as well as in trained ones; what it knows does not matter here.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import torch
from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

VOCABULARY = 512
LENGTH = 1024

# names that families have for the same sizes
_SIZES: dict[int, tuple[str, ...]] = {
    VOCABULARY: ("vocab_size",),
    128: ("hidden_size", "n_embd", "d_model", "dim", "intermediate_size", "n_inner", "ffn_dim", "lru_width"),
    4: ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    2: ("num_key_value_heads", "num_kv_heads", "n_head_kv"),
    32: ("head_dim", "qk_nope_head_dim", "v_head_dim", "moe_intermediate_size", "kv_lora_rank", "attention_head_dim"),
    16: ("qk_rope_head_dim", "rotary_dim"),
    2048: ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "max_sequence_length"),
}
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")


def small_settings(model_type: str) -> dict[str, Any]:
    """Settings of a family's config for a small model; keys that the family does not have are left out."""
    kind = CONFIG_MAPPING[model_type]
    plain = kind()
    text = plain.get_text_config()
    settings: dict[str, Any] = {}
    for size, names in _SIZES.items():
        settings |= {name: size for name in names if isinstance(getattr(text, name, None), int)}
    settings |= {name: 4 for name in (*_HEADS, *_EXPERTS) if isinstance(getattr(text, name, None), int)}
    settings |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    if isinstance(getattr(text, "sliding_window", None), int):
        settings["sliding_window"] = 256
    for name in ("q_lora_rank",):
        if isinstance(getattr(text, name, None), int):
            settings[name] = 48
    return settings


def build(model_type: str, folder: Path, **more: Any) -> Path:
    """A model of the family with sharp random weights, saved under ``folder``; returns where.

    Raises:
        Exception: whatever the library says to so small a model.
    """
    kind = CONFIG_MAPPING[model_type]
    settings = {
        name: value
        for name, value in (small_settings(model_type) | more).items()
        # a size that follows from others cannot be set
        if not isinstance(getattr(kind, name, None), property)
    }
    config = kind(**settings)
    model = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    torch.manual_seed(7)
    made = model(config).eval()
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if weight.dim() > 1 and not any(word in name for word in ("embed", "wte", "wpe")):
                weight.mul_(6.0)
        # sharp answers: of nearly even ones a fault would change little
        made.get_output_embeddings().weight.mul_(10.0)
    target = folder / model_type
    made.save_pretrained(target)
    return target


def families() -> list[str]:
    """All families with a causal language model."""
    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def quiet() -> contextlib.AbstractContextManager[Any]:
    """Without the library's bars."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    return contextlib.nullcontext()
