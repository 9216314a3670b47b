"""Which keys of a ``config.json`` are understood: one that may change what a KV cache holds, and is not, is refused.

Families invent keys all the time. A figure that ignores one is wrong without anybody seeing it, so every key that
speaks of attention, heads, layers, windows, states or caches has to be known here, as read elsewhere or as harmless.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from niah.errors import ConfigError

# what a key that may concern the cache has in its name
_SPEAKS = re.compile(
    r"attn|attention|head|layer|window|sliding|swa(_|$)|chunk|state|ssm|mamba|conv|rnn|recurren|retention|lightning"
    r"|memor|cache|kv|loop|recurs|cycles|ut_steps|block|pattern|cross|shar(e|ing)|local|global|sparse|lru|hybrid|latent|lora_rank|compress|(^|_)cla_"
    r"|use_cla|mfa|yoco|linear|interval|index|sink|stride|delta|gla(_|$)|kda|lsh|hash|landmark|segment|gqa|query_group"
)


# read by ``_config``, ``_layers``, ``_context`` and ``_weights``
UNDERSTOOD = frozenset(
    [
        "num_hidden_layers",
        "n_layer",
        "num_layers",
        "n_layers",
        "num_transformer_layers",
        "num_attention_heads",
        "n_head",
        "num_heads",
        "n_heads",
        "num_query_heads",
        "num_key_value_heads",
        "num_kv_heads",
        "n_head_kv",
        "n_kv_heads",
        "multi_query_group_num",
        "num_attention_groups",
        "num_query_groups",
        "head_dim",
        "attention_head_dim",
        "kv_channels",
        "multi_query",
        "multi_query_attention",
        "new_decoder_architecture",
        "attn_config",
        "v_head_dim",
        "num_key_value_heads_per_layer",
        "layer_types",
        "attn_type_list",
        "block_types",
        "_block_types",
        "attention_window_size",
        "block_configs",
        "cross_attention_layers",
        "use_cla",
        "cla_share_factor",
        "sliding_window",
        "sliding_window_size",
        "use_sliding_window",
        "sliding_window_pattern",
        "_sliding_window_pattern",
        "max_window_layers",
        "attention_chunk_size",
        "no_rope_layers",
        "no_rope_layer_interval",
        "kv_lora_rank",
        "q_lora_rank",
        "qk_rope_head_dim",
        "qk_nope_head_dim",
        "global_head_dim",
        "num_global_key_value_heads",
        "attention_k_eq_v",
        "per_layer_config",
        "num_kv_shared_layers",
        "full_attention_interval",
        "full_attn_idxs",
        "conv_L_cache",
        "linear_num_key_heads",
        "linear_num_value_heads",
        "linear_key_head_dim",
        "linear_value_head_dim",
        "linear_conv_kernel_dim",
        "hidden_size_per_layer_input",
    ]
)
# numerics, training and other parts of the model; what they say leaves the cache as it is
_HARMLESS = frozenset(
    [
        "use_cache",
        "use_cache_kernel",
        "cache_implementation",
        "output_attentions",
        "output_hidden_states",
        "chunk_size_feed_forward",
        "cross_attention_hidden_size",
        "pruned_heads",
        "qk_head_dim",
        "parallel_attn",
        "attention_softmax_in_fp32",
        "softmax_in_fp32",
        "scale_attention_softmax_in_fp32",
        "scale_attn_weights",
        "scale_attn_by_inverse_layer_idx",
        "reorder_and_upcast_attn",
        "apply_query_key_layer_scaling",
        "query_pre_attn_scalar",
        "attn_temperature_tuning",
        "clip_qkv",
        "attention_value_scale",
        "use_bidirectional_attention",
        "use_logn_attn",
        "use_flash_attn",
        "use_flash_attention",
        "use_memory_efficient_attention",
        "flash_attn",
        "num_ln_in_parallel_attn",
        "block_auto_adjust_ff_dim",
        "block_ffn_dim_multiplier",
        "block_multiple_of",
        "use_parallel_block",
        "layer_switch",
        "order_of_interleaved_layers",
        "num_attention_heads_per_layer",
        "vocab_size_per_layer_input",
        "decoder_sparse_step",
        "num_dense_layers",
        "n_dense_layers",
        "tie_lm_head",
        "share_input_output_layers",
        "use_embedding_sharing",
        "share_q_dim",
        "normalization_layer_name",
        "max_attn_value",
        # which parts of a long text each token reads; all keys and values are kept
        "dual_chunk_attention_config",
        "shared_intermediate_size",
        "share_expert_dim",
        "swiglu_limits_shared",
        "gated_norm_rank",
        "laurel_rank",
        "activation_sparsity_pattern",
        "compression_config",
        "embd_layer",
        "conv_use_xavier_init",
        "block_use_xavier_init",
        "block_use_swiglu",
        "block_norm_eps",
        "conv_dim_out",
        "block_dim",
        "block_mlp_init_scale",
        "block_out_init_scale",
        "initial_context_length",
        "linear_attn_alpha_factor",
        "linear_attn_beta_factor",
        "full_attn_alpha_factor",
        "full_attn_beta_factor",
        "num_gqa_groups",
        "kv_scale",
        "qkv_multipliers",
        "hidden_states_scale",
        "do_layer_norm_before",
        "_remove_final_layer_norm",
        "layer_norm_elementwise_affine",
        "layernorm_embedding",
        "attn_logit_scale",
        "resid_attn_scale",
        "mask_index",
        "unk_index",
        "freeze_lm_head",
        "freeze_text_layers",
        "freeze_vision_layers",
    ]
)
_HARMLESS_FORMS = re.compile(
    r".*dropout.*|.*pdrop|.*_drop|.*layer_?drop|.*bias(_.*)?|.*(layer_?norm|rms_?norm|qk_?norm|_norm|_norms|norm_eps).*"
    r"|.*(softcap|softcapping|multipliers?|scaling|init_scale|init_std)|attn_scale|.*layer_?scale.*"
    r"|_?attn_impl.*|_?attn_implementation.*|.*gat(e|ed|ing)(_.*)?"
    r"|.*(expert|moe|mlp|mtp|ffn|router|nextn).*|.*(vision|visual|image|audio|video|speech|projector).*|mm_.*"
    r"|(lm|cls|classifier|score|medusa|eagle)_?head.*|.*rope_(theta|scaling|parameters|layers).*|rope_.*"
)
# say once more what ``layer_types`` lists
_SAID_BY_LAYER_TYPES = frozenset(
    {"global_attn_every_n_layers", "local_attention", "prefix_dense_sliding_window_pattern"}
)
# keys that mean nothing for the cache in these families: checked against the caches that transformers builds
_FAMILY: Mapping[str, frozenset[str]] = {
    # local layers are a mask, their keys and values are all kept
    "gpt_neo": frozenset({"attention_types", "attention_layers", "window_size"}),
    "doge": frozenset({"keep_window_size"}),
    # of rotary positions
    "ernie4_5": frozenset({"compression_ratio"}),
    "ernie4_5_moe": frozenset({"compression_ratio"}),
    # its number of layers counts every cycle
    "hrm_text": frozenset({"num_layers_per_stack", "H_cycles", "L_cycles", "L_bp_cycles"}),
    "longcat_flash": frozenset({"attention_method"}),
    "minimax": frozenset({"block_size"}),
    # initial values and bounds of a gated-delta layer
    "olmo_hybrid": frozenset(
        {"linear_a_log_max", "linear_a_log_min", "linear_dt_max", "linear_dt_min", "linear_dt_init_floor"}
        | {"linear_allow_neg_eigval"}
    ),
    "recurrent_gemma": frozenset({"lru_width", "conv1d_width"}),
}
# what is known of caches that the formulas do not describe
_KNOWN: Mapping[str, str] = {
    "attn_layer_period": "state-space layers",
    "attn_layer_indices": "state-space layers",
    "hybrid_override_pattern": "state-space layers",
    "layers_block_type": "state-space layers",
    "ssm_cfg": "state-space layers",
    "ssm_state_size": "state-space layers",
    "state_size": "state-space layers",
    "mamba_d_state": "state-space layers",
    "hybrid_layer_pattern": "windows in a pattern of its own",
    "index_topk": "an indexer's own keys, which engines store in different ways",
    "index_head_dim": "an indexer's own keys, which engines store in different ways",
    "linear_attn_config": "linear-attention layers of a kind of its own",
}
# no key gives these away
_KNOWN_FAMILIES: Mapping[str, str] = {
    "cpmant": "keys and values of a prompt of its own",
    "xlnet": "hidden states instead of keys and values",
    "xlstm": "recurrent states",
    "rwkv": "recurrent states",
    "mamba": "state-space layers",
    "falcon_mamba": "state-space layers",
    "mamba2": "state-space layers",
}


def refuse_unknown(name: str, values: Mapping[str, Any]) -> None:
    """Refuse a model with a key that may change what its cache holds and is not understood.

    Args:
        values: the text section of a config, without nulls.

    Raises:
        ConfigError: such a key, or a family whose cache has no formula here.
    """
    family = str(values.get("model_type", ""))
    if family in _KNOWN_FAMILIES:
        raise _refused(name, f"is of the type {family!r}: its cache holds {_KNOWN_FAMILIES[family]}")
    for key, what in _KNOWN.items():
        if key in values and not _says_nothing(values[key]):
            raise _refused(name, f"has {key!r}: its cache holds {what}")
    for key, value in values.items():
        if _is_unknown(key, value, family, listed="layer_types" in values):
            raise _refused(
                name, f"has {key!r} ({_short(value)}), which may change what its cache holds and is not understood here"
            )


def unknown_among(values: Mapping[str, Any]) -> list[str]:
    """The keys of a nested section that may concern the cache and are not understood."""
    return [key for key, value in values.items() if _is_unknown(str(key), value, "", listed=False)]


def _is_unknown(key: str, value: Any, family: str, *, listed: bool) -> bool:
    if key in UNDERSTOOD or key in _HARMLESS or _says_nothing(value) or _SPEAKS.search(key) is None:
        return False
    if key in _FAMILY.get(family, ()) or (listed and key in _SAID_BY_LAYER_TYPES):
        return False
    return _HARMLESS_FORMS.fullmatch(key) is None


def _says_nothing(value: Any) -> bool:
    """Off, empty or absent: a number that switches nothing on."""
    return value is None or value is False or value in (0, "", [], (), {})


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _refused(name: str, what: str) -> ConfigError:
    return ConfigError(
        f"the config of {name!r} {what}, for which there is no formula here: no figure rather than a wrong one; "
        "its answers can be tested through a server that runs it (--backend openai)."
    )
