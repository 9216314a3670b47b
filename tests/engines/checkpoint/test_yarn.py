"""A context stretched by the backend: the library's own YaRN, said in force, in the plan and in the ids."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma3TextConfig, GPT2Config, LlamaConfig, LlamaForCausalLM

from niah.backends.transformers.load import load_model, stretched_config
from niah.backends.transformers.options import TransformersOptions
from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.checkpoint.yarn import in_force, stretched, yarn
from niah.engines.vllm.arguments import VllmEngineOptions, engine_settings
from niah.errors import ConfigError
from niah.kv.grammar import parse_one
from niah.models.shape import ModelShape

SIZES: dict[str, Any] = {"vocab_size": 97, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2}
SIZES |= {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64}
ROPE = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64}


def info(source: str = "m", **config: Any) -> ModelInfo:
    shape = ModelShape.from_config({**SIZES, "model_type": "llama", **config}, "m")
    known: Any = SimpleNamespace()
    return ModelInfo("m", source, "r", known, known, shape=shape, context_tokens=shape.context_tokens)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    torch.manual_seed(3)
    LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters={"rope_type": "default", "rope_theta": 1e4})).save_pretrained(
        tmp_path
    )
    return str(tmp_path)


def test_the_model_is_the_one_that_the_library_stretches(folder: str) -> None:
    ids = torch.arange(1, 91)[None]
    options = TransformersOptions(yarn_factor=4, dtype="fp32", device="cpu", threads=1)
    loaded = load_model(options, info(folder))
    library = AutoModelForCausalLM.from_pretrained(folder, rope_parameters=ROPE, max_position_embeddings=256)
    plain = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        ours, theirs, other = (model(ids).logits for model in (loaded.model, library, plain))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
    assert (ours - other).abs().max() > 1e-3
    assert in_force(loaded.model.config) == "yarn, factor 4"
    assert in_force(plain.config) is None


def test_the_plan_has_the_stretched_context() -> None:
    assert stretched(info(), 4).context_tokens == 256


def test_it_is_part_of_the_identity_only_where_it_is_asked() -> None:
    assert "yarn_factor" not in TransformersOptions().identity()
    assert TransformersOptions(yarn_factor=2).identity()["yarn_factor"] == 2


def test_a_file_that_stretches_already_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"stretches its positions already \(yarn, factor 4\)"):
        stretched(info(rope_parameters=ROPE), 2)


@pytest.mark.parametrize(
    ("config", "match"),
    [
        (GPT2Config(), "no rotary positions"),
        (Gemma3TextConfig(), "differ in their rotary positions"),
    ],
)
def test_positions_that_cannot_be_stretched(config: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        yarn(config, 2, "m")


def test_the_config_is_stretched_without_loading_weights(folder: str) -> None:
    config = stretched_config(TransformersOptions(), info(folder), 2)
    assert (config.max_position_embeddings, config.rope_parameters["factor"]) == (128, 2)


def test_vllm_is_told_the_length_of_a_file_that_states_the_one_before_its_stretching() -> None:
    """vLLM 0.32 takes ``max_position_embeddings`` of a YaRN file as stretched already (``config/model.py``)."""
    asked = SessionRequest(parse_one("bf16"), 200, reuse=True, is_complete=lambda *_: True)
    settings = engine_settings(VllmEngineOptions(), info(rope_parameters=ROPE), asked, on_cpu=True)
    assert settings["hf_overrides"] == {"max_position_embeddings": 256}
    assert "hf_overrides" not in engine_settings(VllmEngineOptions(), info(), asked, on_cpu=True)
