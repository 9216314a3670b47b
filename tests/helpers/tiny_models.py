"""Random models small enough for a unit test, in the shapes that matter: grouped heads, windows, MQA."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GptOssConfig,
    GptOssForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from niah.backends.transformers.attention import register
from niah.backends.transformers.load import LoadedModel, ready
from niah.models.shape import ModelShape

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


def llama(dtype: torch.dtype = torch.float32) -> LoadedModel:
    """4 layers, 6 heads over 2 KV heads of 32."""
    config = LlamaConfig(**_common(num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, head_dim=32))
    return made_ready(LlamaForCausalLM, config, dtype)


def one_layer() -> LoadedModel:
    """A single layer: what its cache does not hold cannot have been passed on by another."""
    config = LlamaConfig(**_common(num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=32))
    return made_ready(LlamaForCausalLM, config, torch.float32)


def mistral() -> LoadedModel:
    """Every layer with a window of 24."""
    config = MistralConfig(
        **_common(num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=32, sliding_window=24)
    )
    return made_ready(MistralForCausalLM, config, torch.float32)


def gemma3() -> LoadedModel:
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
    return made_ready(Gemma3ForCausalLM, config, torch.float32)


def deepseek() -> LoadedModel:
    """MLA with the real latent: 512 elements and 64 of rotary key; 2 layers, one of them with experts."""
    config = DeepseekV3Config(
        **_common(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, moe_intermediate_size=32)
        | {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 32, "v_head_dim": 32, "q_lora_rank": 48},
        first_k_dense_replace=1,
        n_routed_experts=4,
        n_group=2,
        topk_group=1,
        num_experts_per_tok=2,
    )
    return made_ready(DeepseekV3ForCausalLM, config, torch.float32)


def gpt_oss() -> LoadedModel:
    """Learned sinks, every second layer with a window of 24; eager attention, as SDPA has no learned sinks."""
    config = GptOssConfig(
        **_common(num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=32, sliding_window=24)
        | {"attn_implementation": "eager"},
        num_local_experts=2,
        num_experts_per_tok=1,
        layer_types=["sliding_attention", "full_attention"] * 2,
    )
    return made_ready(GptOssForCausalLM, config, torch.float32, attention="eager")


def family(model_type: str) -> LoadedModel:
    """A random model of a family, 3 layers, 4 heads over 2 KV heads of 32."""
    from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING

    common = _common(num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=32)
    config = CONFIG_MAPPING[model_type](**common)
    return made_ready(MODEL_FOR_CAUSAL_LM_MAPPING[type(config)], config, torch.float32)


def made_ready(kind: Any, config: Any, dtype: torch.dtype = torch.float32, attention: str | None = None) -> LoadedModel:
    torch.manual_seed(7)
    model = kind(config)
    # random weights of the usual size give almost equal logits everywhere; larger ones make decoding depend on context
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and "embed" not in name:
                parameter.mul_(6.0)
    return ready(model.to(dtype).eval(), attention or register())


def shape_of(loaded: LoadedModel) -> ModelShape:
    return ModelShape.from_config(loaded.model.config.to_dict(), name="tiny")


ALL = {"llama": llama, "mistral": mistral, "gemma3": gemma3}
