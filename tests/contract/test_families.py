"""Families of transformers: each answers as a plain forward pass does, or is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.helpers.families import Outcome, outcome

EQUAL = [
    "afmoe",
    "apertus",
    "arcee",
    "biogpt",
    "bitnet",
    "codegen",
    "cohere2",
    "ctrl",
    "cwm",
    "diffllama",
    "doge",
    "ernie4_5",
    "exaone4",
    "falcon",
    "gemma",
    "gemma2",
    "gemma3_text",
    "glm",
    "glm4",
    "gpt2",
    "gpt_bigcode",
    "gpt_neox",
    "gpt_oss",
    "gptj",
    "granite",
    "granite_swa",
    "granitemoe",
    "helium",
    "internlm3",
    "jetmoe",
    "llama",
    "minimax_m2",
    "mistral",
    "mixtral",
    "modernbert-decoder",
    "olmo2",
    "olmo3",
    "opt",
    "persimmon",
    "phi",
    "phi3",
    "phimoe",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "smollm3",
    "stablelm",
    "starcoder2",
]
EQUAL += ["falcon (one KV head)", "llama (llama3)", "llama (linear)", "llama (yarn)", "phi3 (longrope)"]
EQUAL += ["llama (dynamic)", "qwen2 (window)"]
REFUSED = {
    "mpt": "ALiBi",
    "bloom": "ALiBi",
    "falcon (ALiBi)": "ALiBi",
    "bart": "takes no position_ids",
    "gpt_neo": "plain forward pass",
    "bert": "plain forward pass",
    "roberta": "plain forward pass",
    "mamba": "mamba",
    "recurrent_gemma": "keep a state",
    "qwen3_next": "keep a state",
}


def _asked(name: str, folder: Path) -> Outcome:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return outcome(name, folder)
    finally:
        torch.set_num_threads(before)


@pytest.mark.proof(one_in=3)
@pytest.mark.parametrize("name", EQUAL)
def test_equal_to_a_plain_pass(name: str, tmp_path: Path) -> None:
    found = _asked(name, tmp_path)
    assert (found.how, found.why) == ("equal", "")
    assert found.widest_nats <= 1e-3


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name: str, tmp_path: Path) -> None:
    found = _asked(name, tmp_path)
    assert found.how == "refused"
    assert REFUSED[name] in found.why
