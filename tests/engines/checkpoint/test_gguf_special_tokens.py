"""What a GGUF file says of BOS and EOS; where it says nothing, what llama.cpp's own source does with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from niah.engines.checkpoint.gguf_special_tokens import bos_eos_ids, set_bos_eos
from niah.models.embedded import EMBEDDED, embedded_folder
from tests.helpers.model_files import begun, library
from tests.helpers.small_tokenizers import SPECIALS, gemma_rust, gpt2_rust

gguf = pytest.importorskip("gguf", reason="GGUF files are written with the package gguf")

START, END = SPECIALS


def _keys(**more: Any) -> dict[str, Any]:
    return {"tokenizer.ggml.model": "llama", "tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.eos_token_id": 1} | {
        f"tokenizer.ggml.{name}": value for name, value in more.items()
    }


@pytest.mark.parametrize(
    ("keys", "ends"),
    [
        # Gemma 3's own file
        (_keys(add_bos_token=True, add_eos_token=False), (2, None)),
        # SmolLM2's own file
        (_keys(model="gpt2", pre="smollm", add_bos_token=False), (None, None)),
        # nothing said: by the kind of tokenizer
        (_keys(), (2, None)),
        (_keys(model="gpt2", pre="llama-bpe"), (2, None)),
        (_keys(model="gpt2", pre="tekken"), (2, None)),
        (_keys(model="gpt2", pre="qwen2"), (None, None)),
        (_keys(model="gpt2"), (None, None)),
        (_keys(model="t5"), (None, 1)),
        (_keys(model="rwkv"), (None, None)),
        ({"tokenizer.ggml.model": "llama"}, (1, None)),
        # what is said wins
        (_keys(add_bos_token=False), (None, None)),
        (_keys(add_bos_token=False, add_eos_token=True), (None, 1)),
        (_keys(model="gpt2", pre="llama-bpe", add_bos_token=False), (None, None)),
        (_keys(model="gpt2", pre="qwen2", add_bos_token=True, add_eos_token=True), (2, 1)),
        ({}, (None, None)),
    ],
)
def test_what_a_file_says(keys: dict[str, Any], ends: tuple[int | None, int | None]) -> None:
    assert bos_eos_ids(keys) == ends


def _file(path: Path, made: Any, *, adds_bos: bool | None, adds_eos: bool | None, kind: str = "gpt2") -> Path:
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model(kind)
    writer.add_token_list(["a", "b"])
    writer.add_bos_token_id(made.bos_token_id)
    writer.add_eos_token_id(made.eos_token_id)
    if adds_bos is not None:
        writer.add_add_bos_token(adds_bos)
    if adds_eos is not None:
        writer.add_add_eos_token(adds_eos)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("read_as", [("", ""), (START, ""), (START, END)])
@pytest.mark.parametrize("adds", [(True, False), (False, False), (True, True), (False, True), (None, None)])
def test_a_tokenizer_does_as_its_file_says(
    adds: tuple[bool | None, bool | None], read_as: tuple[str, str], tmp_path: Path
) -> None:
    """Whatever the library made of the file, before and after it has been saved."""
    made = library(begun(gpt2_rust(), *read_as))
    path = _file(tmp_path / "m.gguf", made, adds_bos=adds[0], adds_eos=adds[1])
    set_bos_eos(made, path)
    bare = made("x y", add_special_tokens=False).input_ids
    wanted = [*([made.bos_token_id] if adds[0] else []), *bare, *([made.eos_token_id] if adds[1] else [])]
    assert made("x y").input_ids == wanted
    made.save_pretrained(tmp_path / "saved")
    assert type(made).from_pretrained(tmp_path / "saved")("x y").input_ids == wanted


def test_a_tokenizer_that_does_so_already_is_left_as_it_is(tmp_path: Path) -> None:
    made = library(begun(gemma_rust(), START))
    path = _file(tmp_path / "m.gguf", made, adds_bos=None, adds_eos=None, kind="llama")
    before = made.backend_tokenizer.to_str()
    set_bos_eos(made, path)
    assert made.backend_tokenizer.to_str() == before


def test_a_conversion_that_has_changed_is_made_anew() -> None:
    gemma, smollm2 = (embedded_folder(alias).name for alias in ("gemma3-270m", "smollm2"))
    assert gemma == f"gemma3-270m-{EMBEDDED['gemma3-270m'].sha256[:8]}-2"
    # its tokens and so its cells are what they were
    assert smollm2 == f"smollm2-{EMBEDDED['smollm2'].sha256[:8]}"
