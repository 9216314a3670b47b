"""Shapes read from configs: one case for each way in which model families say what their cache is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from niah.errors import ConfigError
from niah.kv.base import KVConfig
from niah.kv.memory import kv_bytes, reference_bytes, weights_bytes
from niah.kv.shape import LayerShape, ModelShape

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
    letters = {"full": "F", "window": "W", "chunked": "C", "linear": "L", "shared": "S"}
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
