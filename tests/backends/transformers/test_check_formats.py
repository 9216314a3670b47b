"""What the transformers backend refuses to store, before anything is loaded."""

from __future__ import annotations

import pytest

from niah.backends.transformers import check_formats as _hf_formats
from niah.backends.transformers.check_formats import format_problems
from niah.backends.transformers.plugin import PLUGIN
from niah.kv.grammar import parse_one
from niah.models.known import builtin_shape
from niah.types import Host


@pytest.mark.parametrize(
    ("model", "kv", "reason", "hint"),
    [
        ("smollm2-135m", "nvfp4", "no keys and values stored as nvfp4", "--backend vllm"),
        ("smollm2-135m", "tq-k8v4", "no keys stored as fp8_e4m3", "--backend vllm"),
        ("smollm2-135m", "tq-3bit", "no keys and values stored as int3", "--backend vllm or vllm-server"),
        ("smollm2-135m", "q8_0", "no keys and values stored as q8_0", "--backend llamacpp"),
        ("smollm2-135m", "fp8(scales=checkpoint)", "with checkpoint scales", "--backend vllm"),
        ("smollm2-135m", "int8+paged", "the backend 'transformers' has no paging", "--backend vllm"),
        ("smollm2-135m", "int8+skip(0,30)", "there is no layer 30", "layers 0 to 29"),
        ("smollm2-135m", "k8v4(group_size=24)", "groups of 24 do not fit the values", "divides 64"),
        ("smollm2-135m", "kivi4(group_size=48,residual=96)", "groups of 48 do not fit the values", "divides 64"),
        ("smollm2-135m", "quanto4(group_size=128)", "groups of 128 do not fit the keys", "divides 64"),
        ("smollm2-135m", "quanto4+skip(0)", "QuantizedCache quantizes every layer", "int4 with skip"),
        ("gemma-3-270m", "kivi4", "window layers drop them one at a time", "kivi4+skip(sliding_window)"),
        ("gemma-3-270m", "quanto4", "QuantizedCache refuses models with window layers", "int4 or k8v4"),
        ("deepseek-v3", "k8v4", "stores a latent, not K and V", "16-bit"),
    ],
)
def test_refusals_say_why_and_what_instead(model: str, kv: str, reason: str, hint: str) -> None:
    problems = PLUGIN.problems(PLUGIN.options(), parse_one(kv), builtin_shape(model), Host())
    assert [p for p in problems if reason in p.reason and hint in p.suggestion], problems


@pytest.mark.parametrize(("name", "package"), [("quanto4", "optimum-quanto"), ("hqq8", "hqq")])
def test_a_missing_package_is_named_with_its_install_line(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setattr(_hf_formats, "find_spec", lambda module: None)
    (problem,) = format_problems(parse_one(name), builtin_shape("smollm2-135m"))
    assert problem.reason == f"it needs the package {package}, which is not installed"
    assert problem.suggestion.startswith("pip install 'niah-kv[")

    def no_parent(module: str) -> None:
        raise ModuleNotFoundError(module)

    monkeypatch.setattr(_hf_formats, "find_spec", no_parent)
    assert format_problems(parse_one(name), None)


@pytest.mark.parametrize("kv", ["kivi4+skip(sliding_window)", "int4+skip(0,-1)", "k8v4", "fp8", "fp8(scales=dynamic)"])
def test_what_runs_on_window_models(kv: str) -> None:
    assert format_problems(parse_one(kv), builtin_shape("gemma-3-270m")) == []
