"""Built-in shapes: names as people write them, and configs that agree with the published parameter counts."""

from __future__ import annotations

import pytest

from niah.errors import ConfigError
from niah.models.known import _ALIASES, _ZOO, _index, builtin_names, builtin_shape, find_builtin
from niah.models.shape import ModelShape

# from 4B on the published count has a vision tower that the text config does not describe
VISION_PARAMETERS = 420_000_000


@pytest.mark.parametrize("name", builtin_names())
def test_parameters_counted_from_the_config_are_the_published_ones(name: str) -> None:
    config, published = _ZOO[name]
    if name in ("gemma-3-4b", "gemma-3-12b", "gemma-3-27b"):
        published -= VISION_PARAMETERS
    # norms, biases and position tables are not counted
    assert ModelShape.from_config(config, name).parameters == pytest.approx(published, rel=0.004)
    shape = builtin_shape(name)
    assert shape.name == name
    assert shape.context_tokens is not None


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("LLaMA-2-70B", "llama-2-70b"),
        ("meta-llama/Llama-2-70b-hf", "llama-2-70b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("qwen3-8b-base", "qwen3-8b"),
        ("google/gemma-3-270m-it", "gemma-3-270m"),
        ("gemma3-270m", "gemma-3-270m"),
        ("smollm2", "smollm2-135m"),
        ("HuggingFaceTB/SmolLM2-1.7B-Instruct", "smollm2-1.7b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-v2-lite"),
        ("openai/gpt-oss-20b", "gpt-oss-20b"),
        ("bigcode/starcoder", "starcoder-15b"),
    ],
)
def test_names_as_people_write_them(written: str, name: str) -> None:
    assert builtin_shape(written).name == name


@pytest.mark.parametrize("name", ["deepseek-r1-distill-qwen-7b", "llama-2-13b", "qwen2.5-7b-instruct-1m", ""])
def test_other_models_are_not_taken_for_a_known_one(name: str) -> None:
    assert find_builtin(name) is None


def test_names_do_not_collide_once_normalised() -> None:
    assert len(_index()) == len({*_ZOO, *_ALIASES})
    assert all(builtin_shape(name).name == name for name in builtin_names())


def test_unknown_name_offers_a_near_one() -> None:
    with pytest.raises(ConfigError, match=r"'meta/llama-3.1-9b'. Did you mean 'llama-3.1-8b'"):
        builtin_shape("meta/llama-3.1-9b")


def test_mistral_has_a_window_only_in_its_first_version() -> None:
    assert {layer.window for layer in builtin_shape("mistral-7b").layers} == {4096}
    assert {layer.window for layer in builtin_shape("mistral-7b-v0.3").layers} == {None}


def test_native_types() -> None:
    assert builtin_shape("llama-2-7b").native_dtype == "fp16"
    assert builtin_shape("smollm2").native_dtype == "bf16"
