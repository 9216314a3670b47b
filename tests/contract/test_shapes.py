"""Shapes against the caches that transformers builds for its own model classes, and refusals by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from transformers import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from niah.backends.transformers.cache.build import layout_difference
from niah.backends.transformers.plugin import PLUGIN
from niah.errors import ConfigError
from niah.kv.grammar import parse_one
from niah.models.shape import ModelShape
from niah.types import Host
from tests.helpers.library_caches import Kept, library_layers

# default configs of classes with every way of saying what a layer keeps; each runs without storage
COUNTED = [
    "afmoe", "bitnet", "bloom", "cohere2", "deepseek_v3", "doge", "exaone4", "falcon", "gemma", "gemma2", "gemma3_text",
    "gemma4_text", "glm", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_oss", "laguna", "lfm2", "lfm3", "llama", "llama4_text",
    "mimo_v2_flash", "minicpm3", "mistral", "modernbert-decoder", "mpt", "olmo3", "olmo_hybrid", "opt", "phi3", "qwen2",
    "qwen3_next", "smollm3", "stablelm", "starcoder2",
]  # fmt: skip
# what their caches hold has no formula, and the sentence names the key or the family
REFUSED = {
    "bamba": "mamba_d_state", "deepseek_v32": "index_topk", "falcon_h1": "mamba_d_state",
    "falcon_mamba": "falcon_mamba", "granitemoehybrid": "mamba_d_state", "jamba": "attn_layer_period",
    "kimi_linear": "linear_head_dim", "mamba2": "mamba2", "minimax_m3_vl_text": "index_head_dim",
    "nemotron_h": "layers_block_type", "rwkv": "rwkv", "xlstm": "xlstm", "zamba2": "layers_block_type",
    "cpmant": "cpmant", "bart": "encoder-decoder",
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.set_verbosity(before)


@pytest.mark.proof(one_in=3)
@pytest.mark.parametrize("model_type", COUNTED)
def test_a_shape_is_what_the_library_caches(model_type: str) -> None:
    config, kept = library_layers(model_type)
    shape = ModelShape.from_config(config, model_type)
    ours = [
        Kept(layer.kv_heads, layer.k_dim, layer.v_dim, layer.window, layer.state_bytes)
        if layer.stores_tokens
        else Kept(state_bytes=layer.state_bytes)
        for layer in shape.layers
    ]
    assert ours == kept
    assert shape.uncounted == ""


def test_layers_that_attend_to_an_image_keep_nothing_of_a_text() -> None:
    config, kept = library_layers("mllama")
    shape = ModelShape.from_config(config, "mllama")
    assert [layer.kind == "cross" for layer in shape.layers] == [layer == Kept() for layer in kept]
    assert shape.kind_counts == {"full": 32, "cross": 8}


@pytest.mark.parametrize(("model_type", "named"), REFUSED.items())
def test_a_cache_without_a_formula_is_refused_by_name(model_type: str, named: str) -> None:
    with pytest.raises(ConfigError, match=f"'{model_type}'.*{named}|{named}"):
        ModelShape.from_config(CONFIG_MAPPING[model_type]().to_dict(), model_type)


def test_every_class_of_the_library_has_a_shape_or_a_refusal_that_names_it() -> None:
    counted, refusals = [], {}
    for model_type in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        if model_type == "gemma4_assistant":
            continue  # the library's own default is not valid
        config = CONFIG_MAPPING[model_type]().to_dict()
        try:
            counted.append(ModelShape.from_config(config, model_type))
        except ConfigError as err:
            refusals[model_type] = str(err)
    assert [name for name, said in refusals.items() if f"'{name}'" not in said] == []
    assert all(layer.elements > 0 for shape in counted for layer in shape.layers if layer.stores_tokens)
    # the allow-list is not so strict that little is left
    assert len(counted) > len(refusals) * 2


@pytest.mark.parametrize(
    ("model_type", "reason"),
    [
        ("recurrent_gemma", "keep a state"),
        ("minimax", "keep a state"),
        ("qwen3_next", "keep a state"),
        ("lfm3", "keep a state"),
        ("mllama", "attend to an image"),
        ("llama4_text", "chunked-attention"),
    ],
)
def test_the_plan_refuses_layers_without_a_cache_of_ours(model_type: str, reason: str) -> None:
    shape = ModelShape.from_config(CONFIG_MAPPING[model_type]().to_dict(), model_type)
    problems = PLUGIN.problems(PLUGIN.options(), parse_one("bf16"), shape, Host(device="cpu", cores=2))
    assert any(problem.field == "model" and reason in problem.reason for problem in problems)


def test_a_shape_that_is_not_the_librarys_is_told() -> None:
    config: Any = CONFIG_MAPPING["gemma2"]()
    shape = ModelShape.from_config(config.to_dict(), "g")
    assert layout_difference(config, shape) == ""
    fewer = ModelShape.from_config({**config.to_dict(), "num_hidden_layers": 2, "layer_types": None}, "g")
    assert layout_difference(config, fewer) == "26 layers in transformers, 2 by the config"
    wider = ModelShape.from_config({**config.to_dict(), "sliding_window": 99}, "g")
    assert layout_difference(config, wider) == "layer 0 keeps 4096 tokens in transformers, 99 by the config"
