"""Models that transformers cannot load here: told by the plan and by the run, before there is a run folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from niah.engines.checkpoint.loadable import check_loadable
from niah.errors import ConfigError
from tests.helpers.command import Command
from tests.helpers.small_tokenizers import gpt2_rust

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 800,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 4096,
    "dtype": "bfloat16",
}
OWN_CODE = {"AutoConfig": "configuration_new.NewConfig", "AutoModelForCausalLM": "modeling_new.NewModel"}
OWN = (
    "brings Python code of its own, without which it cannot be loaded. Read that code, and allow it by --set backend.tr"
)


def _quantized(**settings: Any) -> dict[str, Any]:
    return {"quantization_config": settings}


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "gptq": (
        _quantized(quant_method="gptq", bits=4, group_size=128, desc_act=False),
        "are quantized (gptq), which transformers reads only with the packages 'optimum' and 'gptqmodel': pip install",
    ),
    "awq": (_quantized(quant_method="awq", bits=4, group_size=128, zero_point=True), "package 'gptqmodel'"),
    "bitsandbytes": (
        _quantized(quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type="nf4"),
        "are quantized (bitsandbytes), which transformers reads only with the package 'bitsandbytes'",
    ),
    "bitsandbytes, 8 bit": (_quantized(load_in_8bit=True), "package 'bitsandbytes': pip install bitsandbytes; or use"),
    "compressed-tensors": (
        _quantized(quant_method="compressed-tensors", config_groups={}, format="pack-quantized"),
        "package 'compressed-tensors': pip install compressed-tensors",
    ),
    "auto-round": (_quantized(quant_method="auto-round", bits=4, group_size=128), "quantized (auto-round)"),
    "a method nobody knows": (
        _quantized(quant_method="magic"),
        "cannot be read here: Unknown quantization type, got mag",
    ),
    "a method without a name": (_quantized(bits=4), "quantized (a method that its config does not name)"),
    "own code, unknown type": ({"model_type": "new", "auto_map": OWN_CODE}, OWN),
    "unknown type": ({"model_type": "new"}, "model type `new` but Transformers does not recognize"),
    "multimodal": (
        {
            "model_type": "llava",
            "architectures": ["LlavaForConditionalGeneration"],
            "text_config": LLAMA,
            "vision_config": {"model_type": "clip_vision_model"},
        },
        "('llava') is multimodal, and transformers has no text-only class for it.",
    ),
    "an image model": ({"model_type": "vit"}, "model"),
    "wrong type of a number": ({"num_attention_heads": "four"}, "num_attention_heads"),
}


def _model(folder: Path, **config: Any) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**LLAMA, **config}))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    gpt2_rust().save(str(folder / "tokenizer.json"))
    save_file({"x": torch.zeros(8)}, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _refused(niah: Command, tmp_path: Path, *args: object, code: int = 2) -> str:
    for command in ("plan", "run"):
        said = niah(command, "--kv", "bf16", "-l", "512", "-d", "2", "-n", "1", *args, "--out", tmp_path / "out")
        assert said.code == code, said.out + said.err
        assert not (tmp_path / "out").exists()
        lines = [line for line in said.err.splitlines() if line]
        assert len(lines) == 1, said.err
        assert lines[0].startswith("niah: ")
    return lines[0]


@pytest.mark.parametrize("case", CASES)
def test_a_model_that_cannot_be_loaded_is_refused_in_the_plan(niah: Command, tmp_path: Path, case: str) -> None:
    config, sentence = CASES[case]
    folder = _model(tmp_path / "model", **config)
    assert sentence in _refused(niah, tmp_path, "-m", folder)


def test_shards_that_transformers_would_not_find(niah: Command, tmp_path: Path) -> None:
    folder = _model(tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    said = _refused(niah, tmp_path, "-m", folder)
    assert "no model.safetensors.index.json, by which transformers finds its weights (model-00001-of-00001" in said


def test_files_and_folders_of_another_backend(niah: Command, tmp_path: Path) -> None:
    gguf = tmp_path / "m.gguf"
    gguf.write_bytes(b"GGUF" + bytes(100))
    assert "is a GGUF file, which this backend does not read. Use --backend llamacpp" in _refused(
        niah, tmp_path, "-m", gguf
    )
    (tmp_path / "only").mkdir()
    gguf.rename(tmp_path / "only" / "m.gguf")
    said = _refused(niah, tmp_path, "-m", tmp_path / "only")
    assert f"use --backend llamacpp with --model {tmp_path / 'only' / 'm.gguf'}" in said
    said = _refused(niah, tmp_path, "--backend", "llamacpp", "-m", _model(tmp_path / "model"), "--kv", "fp16")
    assert "holds no GGUF file (it holds a model for --backend transformers)" in said


def test_a_good_model_passes(niah: Command, tmp_path: Path) -> None:
    folder = _model(tmp_path / "model", auto_map=OWN_CODE)  # the library has code for its type
    said = niah("plan", "--kv", "bf16", "-m", folder, "-l", "512", "-d", "2", "-n", "1")
    assert said.code == 0, said.err


def test_weights_that_are_not_there_are_not_made_up(niah: Command, tmp_path: Path) -> None:
    folder = _model(tmp_path / "model")
    said = niah("run", "--kv", "bf16", "-m", folder, "-l", "512", "-d", "2", "-n", "1", "--out", tmp_path / "out")
    assert said.code == 4
    assert "of the tensors that its config asks for, such as lm_head.weight: they would be random" in said.err
    assert "LOAD REPORT" not in said.err


def test_rotary_positions_of_a_kind_that_is_not_there(tmp_path: Path) -> None:
    """The library says so by a bare name, and only when weights are loaded."""
    config = LLAMA | {"rope_scaling": {"rope_type": "sideways", "factor": 2.0}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file({"x": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match="rotary positions of the kind 'sideways'"):
        check_loadable(str(tmp_path), "mine", trust_remote_code=False, revision=None)
