"""Shapes read from configs: one case for each way in which model families say what their cache is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from niah.errors import ConfigError
from niah.kv.config import KVConfig
from niah.kv.memory.formula_text import naive_note
from niah.kv.memory.totals import kv_bytes, reference_bytes, weights_bytes
from niah.models.shape import LayerShape, ModelShape

BASE: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 12,
    "hidden_size": 768,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "intermediate_size": 2048,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}


def shape(**changes: Any) -> ModelShape:
    config = {**BASE, **changes}
    return ModelShape.from_config({k: v for k, v in config.items() if v != "drop"}, "m")


def kinds(**changes: Any) -> str:
    letters = {"full": "F", "window": "W", "chunked": "C", "linear": "L", "shared": "S", "cross": "X", "none": "N"}
    return "".join(letters[layer.kind] for layer in shape(**changes).layers)


def test_grouped_query_attention_and_implied_head_size() -> None:
    assert set(shape().layers) == {LayerShape("full", 4, 64, 64)}


def test_absent_kv_heads_mean_mha() -> None:
    assert shape(num_key_value_heads="drop").kv_heads == (12,)


def test_stated_head_size_beats_hidden_over_heads() -> None:
    assert shape(head_dim=128).head_dims == (128,)


def test_value_heads_of_another_size() -> None:
    assert shape(head_dim=192, v_head_dim=128).layers[0] == LayerShape("full", 4, 192, 128)


def test_gpt2_key_names() -> None:
    gpt2 = ModelShape.from_config(
        {"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024, "vocab_size": 50257},
        "gpt2",
    )
    assert (len(gpt2.layers), gpt2.kv_heads, gpt2.head_dims, gpt2.context_tokens) == (12, (12,), (64,), 1024)
    assert gpt2.parameters == pytest.approx(124_439_808, rel=0.01)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model_type": "falcon", "multi_query": True, "num_kv_heads": 12, "num_key_value_heads": "drop"}, 1),
        ({"model_type": "falcon", "num_key_value_heads": "drop"}, 1),
        ({"model_type": "falcon", "multi_query": False, "num_key_value_heads": "drop"}, 12),
        (
            {
                "model_type": "falcon",
                "new_decoder_architecture": True,
                "num_kv_heads": 8,
                "num_key_value_heads": "drop",
            },
            8,
        ),
        ({"model_type": "gpt_bigcode", "num_key_value_heads": "drop"}, 1),
        ({"multi_query_group_num": 2, "num_key_value_heads": "drop"}, 2),
        ({"attn_config": {"kv_n_heads": 6}, "num_key_value_heads": "drop"}, 6),
    ],
)
def test_multi_query_spellings(changes: dict[str, Any], expected: int) -> None:
    assert shape(**changes).kv_heads == (expected,)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sliding_window": None}, "F" * 12),
        ({"model_type": "mistral", "sliding_window": 4096}, "W" * 12),
        ({"model_type": "gemma3_text", "sliding_window": 512, "sliding_window_pattern": 6}, "WWWWWF" * 2),
        ({"model_type": "gemma3_text", "sliding_window": 512}, "WWWWWF" * 2),
        ({"model_type": "gemma2", "sliding_window": 512}, "WF" * 6),
        ({"model_type": "cohere2", "sliding_window": 512}, "WWWF" * 3),
        ({"model_type": "qwen2", "sliding_window": 512, "use_sliding_window": False}, "F" * 12),
        ({"model_type": "qwen2", "sliding_window": 512}, "F" * 12),
        (
            {"model_type": "qwen2", "sliding_window": 512, "use_sliding_window": True, "max_window_layers": 8},
            "FFFFFFFFWWWW",
        ),
        ({"attention_chunk_size": 8192, "no_rope_layers": []}, "CCCF" * 3),
        ({"attention_chunk_size": 8192, "no_rope_layers": [1, 0] * 6}, "CF" * 6),
        ({"layer_types": ["sliding_attention", "full_attention"] * 6, "sliding_window": 128}, "WF" * 6),
        ({"sliding_window": 512, "num_kv_shared_layers": 5}, "W" * 7 + "S" * 5),
        ({"sliding_window": 512, "sliding_window_pattern": "LLLG"}, "WWWF" * 3),
        ({"attn_type_list": [0, 0, 1] * 4}, "LLF" * 4),
        ({"block_types": ["recurrent", "recurrent", "attention"], "attention_window_size": 64}, "LLW" * 4),
        ({"_block_types": ["attention", "recurrent"], "attention_window_size": 64}, "WL" * 6),
        ({"cross_attention_layers": [3, 11]}, "FFFXFFFFFFFX"),
        ({"use_cla": True, "cla_share_factor": 2}, "FS" * 6),
        ({"use_cla": False, "cla_share_factor": 2}, "F" * 12),
        ({"model_type": "exaone4", "sliding_window": None}, "F" * 12),
    ],
)
def test_layer_kinds(changes: dict[str, Any], expected: str) -> None:
    assert kinds(**changes) == expected


def test_window_layers_hold_their_window_and_chunked_ones_their_chunk() -> None:
    assert {layer.window for layer in shape(model_type="mistral", sliding_window=4096).layers} == {4096}
    assert [layer.window for layer in shape(attention_chunk_size=8192).layers[:4]] == [8192, 8192, 8192, None]


def test_linear_layers_of_qwen3_next() -> None:
    linear = shape(
        model_type="qwen3_next",
        num_hidden_layers=48,
        hidden_size=2048,
        num_attention_heads=16,
        num_key_value_heads=2,
        head_dim=256,
        full_attention_interval=4,
        linear_num_key_heads=16,
        linear_num_value_heads=32,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        linear_conv_kernel_dim=4,
    )
    assert linear.kind_counts == {"linear": 36, "full": 12}
    # 32 · 128 · 128 · 4 B and (2 · 16 · 128 + 32 · 128) · 4 · 2 B
    assert linear.layers[0].state_bytes == 2_097_152 + 65_536
    assert reference_bytes(linear, 1000) == 36 * 2_162_688 + 12 * 2 * 256 * 2 * 1000 * 2
    assert reference_bytes(linear, 0) == 36 * 2_162_688


def test_short_convolution_layers() -> None:
    lfm = shape(full_attn_idxs=[2, 5], conv_L_cache=3)
    assert lfm.kind_counts == {"linear": 10, "full": 2}
    assert lfm.layers[0].state_bytes == 768 * 3 * 2


def test_mla_stores_latent_and_rotary_key() -> None:
    mla = shape(kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128)
    assert mla.is_mla
    assert set(mla.layers) == {LayerShape("full", 1, 512, 64, latent=576)}
    assert reference_bytes(mla, 1) == 12 * 1152


def test_gemma4_full_layers_have_larger_and_fewer_heads() -> None:
    changes = {"model_type": "gemma4_text", "sliding_window": 512, "head_dim": 256, "global_head_dim": 512}
    plain = shape(**changes, num_global_key_value_heads=1)
    assert (plain.layers[0].k_dim, plain.layers[5].k_dim, plain.layers[5].kv_heads) == (256, 512, 4)
    assert shape(**changes, num_global_key_value_heads=1, attention_k_eq_v=True).layers[5].kv_heads == 1
    listed = shape(layer_types=["full_attention"] * 12, per_layer_config={"3": {"head_dim": 96}})
    assert [layer.k_dim for layer in listed.layers[2:5]] == [64, 96, 64]


def test_text_section_is_found_and_takes_the_dtype_from_outside() -> None:
    nested = ModelShape.from_config({"model_type": "x", "torch_dtype": "float16", "text_config": BASE}, "m")
    assert nested.native_dtype == "fp16"
    assert (nested.model_type, nested.layers) == ("llama", shape().layers)


def test_published_gemma3_4b_file_leaves_heads_to_the_library() -> None:
    text = {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    gemma = ModelShape.from_config({"model_type": "gemma3", "torch_dtype": "bfloat16", "text_config": text}, "g")
    assert gemma.kind_counts == {"window": 29, "full": 5}
    assert (gemma.heads, gemma.kv_heads, gemma.head_dims) == (8, (4,), (256,))
    assert reference_bytes(gemma, 1) == 139_264


@pytest.mark.parametrize(
    ("stated", "expected"), [("float16", "fp16"), ("torch.float16", "fp16"), ("bfloat16", "bf16"), ("float32", "bf16")]
)
def test_native_dtype(stated: str, expected: str) -> None:
    assert shape(torch_dtype=stated).native_dtype == expected
    assert shape(dtype=stated).native_dtype == expected


@pytest.mark.parametrize("key", ["num_hidden_layers", "hidden_size", "num_attention_heads"])
def test_missing_key_is_named(key: str) -> None:
    with pytest.raises(ConfigError, match=f"'m' has no '{key}'"):
        shape(**{key: "drop"})


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"num_hidden_layers": "twelve"}, "'num_hidden_layers' is 'twelve'"),
        ({"num_hidden_layers": True}, "'num_hidden_layers' is True"),
        ({"num_key_value_heads": 0}, "'num_key_value_heads' is 0"),
        ({"hidden_size": 770}, "770 is no multiple of 12 heads"),
        ({"layer_types": ["full_attention"] * 3}, "lists 3 layers, but the model has 12"),
        ({"layer_types": ["hybrid"] * 12}, "layer type 'hybrid'"),
        ({"layer_types": ["sliding_attention"] * 12}, "no 'sliding_window'"),
        ({"layer_types": ["linear_attention"] * 12}, "no 'linear_num_key_heads'"),
        ({"kv_lora_rank": 512}, "no 'qk_rope_head_dim'"),
        ({"attn_layer_period": 8}, "state-space"),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_topk": 2048}, "indexer"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"num_kv_shared_layers": 12}, "12 of 12 layers"),
        ({"attention_chunk_size": 8192, "no_rope_layers": [1]}, "lists 1 layers"),
        ({"multi_query": "yes"}, "'multi_query' is 'yes'"),
        ({"model_type": "solar", "sliding_window": 2047}, "'sliding_window'"),
        ({"sliding_window_size": 2047}, "'sliding_window_size'"),
        ({"model_type": "gemma2"}, "no 'sliding_window'"),
        ({"sliding_window": 512, "sliding_window_pattern": "LXG"}, "'LXG'"),
        ({"attn_type_list": [0, 1]}, "lists 2 layers"),
        ({"attn_type_list": [0, 2] * 6}, "'attn_type_list'"),
        ({"block_types": ["attention", "mlp"]}, "block 'mlp'"),
        ({"cross_attention_layers": [12]}, "the layer 12 of 12"),
        ({"num_key_value_heads_per_layer": [4, 4]}, "lists 2 layers"),
        ({"num_key_value_heads_per_layer": [4, 0] * 6}, "holds 0"),
        ({"per_layer_config": {"3": {"cache_kind": "new"}}}, "'cache_kind'"),
        ({"block_configs": [{"ffn": {}}] * 12}, "'block_configs'"),
        ({"block_configs": [{"attention": {"n_heads_in_group": 4, "window_length": 9}}] * 12}, "'window_length'"),
        ({"block_configs": [{"attention": {"n_heads_in_group": 5}}] * 12}, "'n_heads_in_group' is 5"),
        ({"attn_config": {"attn_type": "linear_attention"}}, "'linear_attention'"),
        ({"attn_config": {"kv_n_heads": 4, "sliding_window_size": 64}}, "'sliding_window_size'"),
    ],
)
def test_wrong_configs_are_refused_with_the_key(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        shape(**changes)


def test_folder(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(BASE))
    assert ModelShape.from_folder(folder).name == "my-model"
    assert ModelShape.from_folder(str(folder)).layers == shape().layers


@pytest.mark.parametrize(
    ("content", "match"), [(None, "No such file"), ("{", "not valid JSON"), ("[]", "no JSON object"), ("{}", "no '")]
)
def test_folder_without_a_usable_config(tmp_path: Path, content: str | None, match: str) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ConfigError, match=match):
        ModelShape.from_folder(tmp_path)


def test_mixture_of_experts_parameters() -> None:
    mixtral = ModelShape.from_config(
        {
            "model_type": "mixtral",
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14336,
            "num_local_experts": 8,
            "vocab_size": 32000,
            "tie_word_embeddings": False,
        },
        "mixtral",
    )
    assert mixtral.parameters == pytest.approx(46_702_792_704, rel=0.001)
    assert weights_bytes(mixtral) == 2 * (mixtral.parameters or 0)


def test_weights_follow_the_checkpoints_precision() -> None:
    embedding, rest = 2 * 1000 * 768, shape().parameters or 0
    rest -= embedding
    four_bit = shape(quantization_config={"quant_method": "gptq", "bits": 4})
    assert weights_bytes(four_bit) == embedding * 2 + rest // 2
    assert weights_bytes(shape(quantization_config={"quant_method": "fp8"})) == embedding * 2 + rest
    # a scheme that nobody knows is counted in 16 bit
    assert weights_bytes(shape(quantization_config={"quant_method": "new"})) == 2 * (embedding + rest)


def test_weights_are_unknown_rather_than_wrong() -> None:
    for changes in ({"vocab_size": "drop"}, {"intermediate_size": [2048] * 12}, {"hidden_size_per_layer_input": 256}):
        assert shape(**changes).parameters is None
        assert weights_bytes(shape(**changes)) is None
        assert kv_bytes(shape(**changes), KVConfig("bf16"), 1) == 12 * 2 * 4 * 64 * 2


@pytest.mark.parametrize(
    "key",
    """
    linear_attn_config blocksparse_block_size dense_attention_every_n_layers attention_types local_attention
    mamba_expand ssm_cfg hybrid_layer_pattern num_sink_tokens memory_layers cache_layers_shared kv_share_map
    conv_window recurrent_block lru_width swa_num_key_value_heads cross_layer_interval sparse_config use_yoco
    attention_other_setting lightning_layers index_n_heads value_head_dim kv_compress_ratio segment_attention
    """.split(),  # noqa: SIM905
)
def test_a_key_that_may_change_the_cache_and_is_not_understood_refuses_the_figure(key: str) -> None:
    for value in (2, [1, 2], {"a": 1}, "new"):
        with pytest.raises(ConfigError, match=f"the config of 'm' has '{key}'"):
            shape(**{key: value})
    nothing: tuple[Any, ...] = (None, False, 0, [], {}, "")
    for off in nothing:
        assert shape(**{key: off}).layers == shape().layers


def test_keys_of_published_files_that_say_nothing_of_the_cache() -> None:
    harmless: dict[str, Any] = {
        "attention_bias": True, "attention_dropout": 0.1, "layer_norm_eps": 1e-5, "initializer_range": 0.02,
        "use_cache": True, "layerdrop": 0.1, "attn_pdrop": 0.1, "mlp_layer_types": ["dense"] * 12, "qk_layernorm": True,
        "scale_attn_weights": True, "attention_multiplier": 0.5, "rope_scaling": {"type": "linear", "factor": 2.0},
        "rope_theta": 1e4, "attn_logit_softcapping": 50.0, "query_pre_attn_scalar": 256,
        "cache_implementation": "hybrid",
        "pretraining_tp": 1, "no_rope_layers": [1] * 12, "max_window_layers": 28, "use_qk_norm": True,
        "layer_switch": 4,
        "order_of_interleaved_layers": "local_attn_first", "moe_layer_freq": 1, "first_k_dense_replace": 1,
        "attention_softmax_in_fp32": True, "apply_query_key_layer_scaling": True, "use_flash_attn": True,
        "summary_first_dropout": 0.1, "scale_attn_by_inverse_layer_idx": True, "chunk_size_feed_forward": 128,
        "output_hidden_states": True, "num_nextn_predict_layers": 1, "mtp_num_layers": 1, "attn_output_gate": True,
        "mm_vision_select_layer": -2, "drop_vision_last_layer": True, "layernorm_full_attention_alpha": 3.5,
        "layernorm_linear_attention_beta": 1.0, "interleave_moe_layer_step": 2, "shared_expert_intermediate_size": 512,
        "attn_temperature_tuning": True, "_attn_implementation_autoset": True, "decoder_sparse_step": 1,
    }  # fmt: skip
    assert shape(**harmless).layers == shape().layers


def test_kv_heads_of_each_layer() -> None:
    listed = [4, 4, 1, 2] * 3
    assert [layer.kv_heads for layer in shape(num_key_value_heads_per_layer=listed).layers] == listed
    openelm = ModelShape.from_config(
        {"model_type": "openelm", "num_transformer_layers": 3, "model_dim": 1280, "head_dim": 64, "vocab_size": 32_000}
        | {"num_query_heads": [12, 16, 20], "num_kv_heads": [3, 4, 5], "num_gqa_groups": 4, "max_context_length": 2048}
        | {"share_input_output_layers": True, "qkv_multipliers": [0.5, 1.0], "normalize_qk_projections": True},
        "openelm",
    )
    assert ([layer.kv_heads for layer in openelm.layers], openelm.heads) == ([3, 4, 5], 20)
    assert (openelm.head_dims, openelm.context_tokens) == ((64,), 2048)


def test_pruned_layers_without_attention() -> None:
    """Nemotron NAS: heads by layer, some layers without attention or with a plain matrix in its place."""
    blocks = [
        {"attention": {"n_heads_in_group": 4, "no_op": False, "window_length": None}, "ffn": {}},
        {"attention": {"n_heads_in_group": None, "no_op": True}},
        {"attention": {"n_heads_in_group": None, "replace_with_linear": True}},
    ] * 4
    pruned = shape(block_configs=blocks, num_key_value_heads=None)
    assert pruned.kind_counts == {"full": 4, "none": 8}
    assert {layer.kv_heads for layer in pruned.layers if layer.stores_tokens} == {3}
    # matrices of such layers differ in ways that nobody says
    assert pruned.parameters is None


def test_own_sections_of_layers_are_found_by_number_whatever_its_zeros() -> None:
    own = shape(layer_types=["full_attention"] * 12, per_layer_config={"05": {"head_dim": 512}, "11": {"head_dim": 32}})
    assert [layer.k_dim for layer in own.layers] == [64] * 5 + [512] + [64] * 5 + [32]


def test_two_attentions_a_layer() -> None:
    """LongCat-Flash: 28 layers, 56 caches of a latent."""
    longcat = ModelShape.from_config(
        {"model_type": "longcat_flash", "num_layers": 28, "hidden_size": 6144, "num_attention_heads": 64}
        | {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "attention_method": "MLA"},
        "longcat",
    )
    assert reference_bytes(longcat, 1) == 56 * 576 * 2


def test_a_state_without_a_formula_is_said() -> None:
    mixed = shape(attn_type_list=[0, 0, 1] * 4)
    assert mixed.uncounted == "not counted: the constant state of 8 layers"
    assert reference_bytes(mixed, 10) == 4 * 2 * 4 * 64 * 10 * 2
    assert mixed.parameters is None
    assert shape().uncounted == ""


def test_the_cases_of_published_files() -> None:
    """RecurrentGemma 2B, Llama 3.2 11B Vision and DeciLM 7B at 32k in 16 bit."""
    k32 = 32_768
    recurrent = ModelShape.from_config(
        {"model_type": "recurrent_gemma", "_block_types": ["recurrent", "recurrent", "attention"], "lru_width": 2560}
        | {"attention_window_size": 2048, "conv1d_width": 4, "head_dim": 256, "hidden_size": 2560}
        | {"num_attention_heads": 10, "num_hidden_layers": 26, "num_key_value_heads": 1, "vocab_size": 256_000},
        "recurrentgemma-2b",
    )
    assert reference_bytes(recurrent, k32) == 8 * 2048 * 256 * 2 * 2 == 16_777_216
    text = {**BASE, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
    text |= {"model_type": "mllama_text_model", "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]}
    mllama = ModelShape.from_config({"model_type": "mllama", "text_config": text}, "mllama")
    assert reference_bytes(mllama, k32) == 32 * 8 * 128 * 2 * 2 * k32 == 4_294_967_296
    heads = [4] * 8 + [1] * 5 + [4] * 6 + [1] * 10 + [2, 2, 4]
    deci = ModelShape.from_config(
        {"model_type": "deci", "num_key_value_heads_per_layer": heads, "hidden_size": 4096, "num_hidden_layers": 32}
        | {"num_attention_heads": 32, "intermediate_size": 14_336, "vocab_size": 32_000},
        "decilm-7b",
    )
    assert reference_bytes(deci, k32) == sum(heads) * 128 * 2 * 2 * k32
    for model in (recurrent, mllama, deci):
        assert "right for this model" not in naive_note(model, k32)


STRETCHES = [
    # (what the file says, the context it gives)
    ({"max_position_embeddings": 4096}, 4096),
    # Qwen2.5's card: 32,768 stretched four times
    ({"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}}, 131_072),
    ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}}, 131_072),
    # Qwen3's files have 40,960 beside an original of 32,768
    (
        {"max_position_embeddings": 40_960}
        | {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}},
        131_072,
    ),
    # DeepSeek's and gpt-oss's are stretched already
    (
        {"max_position_embeddings": 163_840}
        | {"rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}},
        163_840,
    ),
    ({"rope_scaling": {"type": "yarn", "factor": 2.0}}, 65_536),
    # Llama 3.2: 32 × 8,192 is not its context
    (
        {"max_position_embeddings": 131_072}
        | {"rope_scaling": {"rope_type": "llama3", "factor": 32.0, "original_max_position_embeddings": 8192}},
        131_072,
    ),
    # Phi-3: the original stands outside, and there is no factor
    (
        {"max_position_embeddings": 131_072, "original_max_position_embeddings": 4096}
        | {"rope_scaling": {"type": "longrope", "long_factor": [1.0], "short_factor": [1.0]}},
        131_072,
    ),
    (
        {"max_position_embeddings": 4096, "original_max_position_embeddings": 512}
        | {"rope_parameters": {"rope_type": "longrope", "factor": 8.0, "original_max_position_embeddings": 512}},
        4096,
    ),
    ({"max_position_embeddings": 512, "rope_parameters": {"rope_type": "dynamic", "factor": 4.0}}, 2048),
    ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}}, 16_384),
    # Gemma 3 states the stretched length, and has a section for each kind of layer
    (
        {"model_type": "gemma3_text", "max_position_embeddings": 131_072, "sliding_window": 512}
        | {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0}, "sliding_attention": {}}},
        131_072,
    ),
    ({"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}, 32_768),
    ({"rope_scaling": None}, 32_768),
]


@pytest.mark.parametrize(("changes", "expected"), STRETCHES)
def test_context_of_stretched_positions(changes: dict[str, Any], expected: int) -> None:
    assert shape(**{"max_position_embeddings": 32_768, **changes}).context_tokens == expected
