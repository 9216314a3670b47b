"""Settings that cannot be honored are refused before anything is loaded, in words."""

from __future__ import annotations

import pytest

from niah.backends.transformers import check_structure as _hf_structure
from niah.backends.transformers.options import TransformersOptions
from niah.backends.transformers.plugin import PLUGIN
from niah.kv.grammar import parse_one
from niah.kv.limits import prompt_problems
from niah.models.shape import ModelShape
from niah.types import Host
from tests.helpers import tiny_models

TWO_CORES = Host(cores=2)
GPU = Host(device="cuda", cores=8)


def _shape(kind: str) -> ModelShape:
    return tiny_models.shape_of(getattr(tiny_models, kind)())


def _said(text: str, kind: str = "llama", host: Host = TWO_CORES, **options: object) -> str:
    problems = PLUGIN.problems(TransformersOptions(**options), parse_one(text), _shape(kind), host)
    return " / ".join(problem.sentence() for problem in problems)


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("gqa(3)", "llama", "2 KV heads cannot be merged to 3. Divisors of 2: 1, 2."),
        ("gqa(1)", "deepseek", "one latent for all heads"),
        ("ring(3)", "llama", "3 ranks on 2 cores would wait for each other. Use at most 2 ranks"),
        ("ring(2)", "gemma3", "a window of 24 tokens leave nothing to spread"),
        ("ring(2)", "deepseek", "a latent, which a ring does not support"),
        ("int8+ring(2)", "llama", "supports no quantized format"),
        ("infini(64)", "mistral", "a window of 24 tokens have a local memory of their own"),
        ("infini(64)", "deepseek", "needs keys without their rotation"),
        ("infini(64)", "gpt_oss", "the model type 'gpt_oss' is not known to allow that"),
        ("streaming(window=64)", "gpt_oss", "positions=original"),
        ("streaming(window=64)", "deepseek", "rotary keys that can be moved"),
        ("offload", "llama", "its cache is in host memory already. Use bf16"),
        ("window(64)+ring(2)", "llama", "exclude each other"),
        ("kivi4+offload", "llama", "needs a format whose tokens stand alone"),
    ],
)
def test_refused_with_a_reason(text: str, kind: str, reason: str) -> None:
    assert reason in _said(text, kind)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("window(64)", "deepseek"),
        ("window(64)", "gpt_oss"),
        ("streaming(window=64,positions=original)", "deepseek"),
        ("streaming(window=64)", "gemma3"),
        ("gqa(2)+int8+window(64)", "llama"),
        ("ring(2)", "llama"),
        ("infini(64)", "llama"),
    ],
)
def test_what_runs_is_not_refused(text: str, kind: str) -> None:
    assert _said(text, kind) == ""


def test_more_ranks_than_cores_only_when_asked_for() -> None:
    assert "backend.oversubscribe=true" in _said("ring(4)")
    assert _said("ring(4)", oversubscribe=True) == ""
    # a GPU's ranks are its own
    assert _said("ring(4)", host=Host(device="cuda", cores=2)) == ""
    assert "would wait" in _said("ring(4)", host=Host(device="cuda", cores=2), device="cpu")


def test_offload_runs_where_there_is_a_gpu() -> None:
    assert _said("offload", host=GPU) == ""
    assert "in host memory already" in _said("offload", host=GPU, device="cpu")


def test_prompts_are_held_against_the_setting() -> None:
    def said(text: str, context: int = 400, question: int = 40) -> str:
        return " / ".join(problem.sentence() for problem in prompt_problems(parse_one(text), context, question))

    assert "a window of 43 tokens does not hold question and answer of 40 and 4 sinks" in said("streaming(window=43)")
    assert said("streaming(window=44)") == ""
    assert "a window of 39 tokens" in said("window(39)")
    assert said("window(40)") == ""
    assert "a segment of 8 tokens" in said("infini(8)")
    assert "8 ranks share a context of 7 tokens" in said("ring(8)", context=7)
    assert said("ring(7)", context=7) == said("int8") == ""


def test_the_check_and_the_code_know_the_same_families() -> None:
    """Each of the list is run in tests/contract/test_methods.py."""
    assert {"llama", "qwen2", "qwen3", "gemma3_text"} <= _hf_structure.ROTATABLE
