"""A model's files as people really have them: one sentence each that says what they are, before anything is loaded."""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from niah.engines.checkpoint.files import check_file, check_folder
from niah.engines.checkpoint.gguf_describe import find_gguf
from niah.engines.checkpoint.gguf_file import check_gguf
from niah.errors import ConfigError

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 269060552\n"
INDEX = "model.safetensors.index.json"


def _save(path: Path, **tensors: torch.Tensor) -> None:
    save_file(tensors or {"x": torch.zeros(64, 64)}, path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model whose files are whole, as far as files go."""
    found = tmp_path / "model"
    found.mkdir()
    (found / "config.json").write_text('{"model_type": "llama"}')
    (found / "tokenizer.json").write_text('{"version": "1.0"}')
    _save(found / "model.safetensors")
    return found


def _cut(name: str, count: int) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[:count])

    return cut


def _write(name: str, text: str | bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def _instead(name: str, text: str | bytes = b"x") -> Callable[[Path], None]:
    """Another file in the place of the weights."""

    def change(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        _write(name, text)(folder)

    return change


def _shards(missing: int | None = None, *, index: bool = True) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        names = [f"model-{number:05d}-of-00003.safetensors" for number in (1, 2, 3)]
        for number, name in enumerate(names, 1):
            if number != missing:
                _save(folder / name)
        if index:
            (folder / INDEX).write_text(json.dumps({"weight_map": {f"w{name}": name for name in names}}))

    return change


def _without_config(*names: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for path in folder.iterdir():
            path.unlink()
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text('{"base_model_name_or_path": "org/base"}' if name[:7] == "adapter" else "{}")

    return change


def _drop(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _adapter_with_config(folder: Path) -> None:
    _drop("model.safetensors")(folder)
    _write("adapter_config.json", "{}")(folder)
    _save(folder / "adapter_model.safetensors")


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pointer for weights": (
        _write("model.safetensors", POINTER),
        "is a Git LFS pointer (to 269,060,552 bytes) and not the file itself. Run 'git lfs pull'",
    ),
    "pointer for the tokenizer": (_write("tokenizer.json", POINTER), "tokenizer.json in"),
    "pointer for the config": (_write("config.json", POINTER), "is a Git LFS pointer"),
    "pointer for a tokenizer model": (_write("tokenizer.model", POINTER), "tokenizer.model in"),
    "pointer for pickled weights": (_instead("pytorch_model.bin", POINTER), "is a Git LFS pointer"),
    "cut in a tensor": (_cut("model.safetensors", 1000), "is cut short: it has 1,000 of"),
    "cut in the header": (_cut("model.safetensors", 20), "is cut short: its header alone has"),
    "cut in the length": (_cut("model.safetensors", 5), "is cut short: it has 5 bytes"),
    "empty weights": (_cut("model.safetensors", 0), "is cut short: it has 0 bytes"),
    "no header": (_write("model.safetensors", b"\xff" * 500), "is no safetensors file, or is damaged"),
    "a page instead": (_write("model.safetensors", "<!doctype html>" * 50), "is no safetensors file, or is damaged"),
    "a damaged header": (
        _write("model.safetensors", struct.pack("<Q", 30) + b"{" * 100),
        "is damaged: its header cannot be read",
    ),
    "a header of another shape": (
        _write("model.safetensors", struct.pack("<Q", 9) + b'{"x": []}' + b"0" * 9),
        "is damaged: its header cannot be read",
    ),
    "one shard missing": (
        _shards(2),
        "a weight file is missing of the 3 of the model 'M': model-00002-of-00003.safetensors",
    ),
    "one shard missing and no index": (_shards(3, index=False), "model-00003-of-00003.safetensors"),
    "an index without shards": (
        _instead(INDEX, '{"weight_map": {"a": "x.safetensors", "b": "y.safetensors"}}'),
        "2 we",
    ),
    "an empty index": (_instead(INDEX, "{}"), "has no 'weight_map'"),
    "a cut index": (_instead(INDEX, '{"weight_map": {"a'), f"{INDEX} of the model 'M' is no JSON, or is cut short"),
    "no weights": (_drop("model.safetensors"), "has no weights: no *.safetensors and no pytorch_model.bin"),
    "TensorFlow": (_instead("tf_model.h5"), "holds TensorFlow weights only"),
    "Flax": (_instead("flax_model.msgpack"), "holds Flax weights only"),
    "GGUF beside a config": (_instead("m.gguf", "GGUF"), "use --backend llamacpp with --model"),
    "cut pickle": (_instead("pytorch_model.bin", b"PK\3\4" + b"0" * 400), "is cut short: its end is missing"),
    "empty pickle": (_instead("pytorch_model.bin", b""), "pytorch_model.bin of the model 'M' is empty"),
    "no tokenizer": (_drop("tokenizer.json"), "has no tokenizer: none of tokenizer.json"),
    "cut tokenizer": (_cut("tokenizer.json", 9), "tokenizer.json of the model 'M' is no JSON, or is cut short"),
    "empty tokenizer": (_cut("tokenizer.json", 0), "tokenizer.json of the model 'M' is empty"),
    "config in Python's words": (_write("config.json", "{'a': None}"), "config.json of the model 'M' is no JSON"),
    "empty config": (_cut("config.json", 0), "config.json of the model 'M' is empty"),
    "zeroed config": (_write("config.json", b"\0" * 700), "config.json of the model 'M' is empty"),
    "a list for a config": (_write("config.json", "[]"), "holds no JSON object"),
    "UTF-16 config": (_write("config.json", "{}".encode("utf-16")), "is no UTF-8 text"),
    "brackets": (_write("config.json", "[" * 100_000), "config.json of the model 'M' is no JSON"),
    "an empty folder": (_without_config(), "is empty. Download the model into it"),
    "an adapter": (
        _without_config("adapter_config.json", "adapter_model.safetensors"),
        "holds an adapter (LoRA) of 'org/base' and no model",
    ),
    "an adapter with a config": (
        _adapter_with_config,
        "holds an adapter (LoRA) and no model",
    ),
    "one GGUF": (
        _without_config("a.gguf"),
        "holds GGUF files only, which this backend does not read: use --backend ll",
    ),
    "two GGUFs": (_without_config("a.gguf", "b.gguf"), "and name one of a.gguf, b.gguf"),
    "the hub's cache": (_without_config("snapshots/abc/config.json", "refs/main"), "snapshots/abc"),
    "one folder too high": (_without_config("inner/config.json"), "has no config.json, so it is not a model: name"),
    "another folder": (_without_config("notes.txt"), "has no config.json, so it is not a model: name"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_files_is_one_sentence(folder: Path, fault: str) -> None:
    change, sentence = FAULTS[fault]
    check_folder(folder, "M")
    change(folder)
    with pytest.raises(ConfigError) as caught:
        check_folder(folder, "M")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "change",
    [
        _shards(),
        _shards(index=False),
        # left by a clone without its other formats, which nobody reads
        _write("pytorch_model.bin", POINTER),
        _write("tf_model.h5", POINTER),
        _instead("pytorch_model.bin", pickle.dumps({})),
    ],
)
def test_files_that_can_be_used_pass(folder: Path, change: Callable[[Path], None]) -> None:
    change(folder)
    check_folder(folder, "M")


def test_a_folder_that_only_describes_needs_no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    check_folder(folder, "M", needs_weights=False)


def _gguf(path: Path, *, tensors: int = 2, cut: int | None = None, start: bytes = b"GGUF") -> Path:
    """A file by the specification: a few values of each kind, tensors of 64 float32 each."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    values = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("general.alignment") + struct.pack("<II", 4, 64),
        text("a.bool") + struct.pack("<IB", 7, 1),
        text("a.long") + struct.pack("<Id", 12, 1.0),
        text("a.list") + struct.pack("<IIQ", 9, 8, 2) + text("one") + text("two"),
        text("a.numbers") + struct.pack("<IIQ", 9, 5, 3) + struct.pack("<3i", 1, 2, 3),
    ]
    found = start + struct.pack("<IQQ", 3, tensors, len(values)) + b"".join(values)
    for number in range(tensors):
        found += text(f"t{number}") + struct.pack("<IQQIQ", 2, 8, 8, 0, number * 256)
    found += b"\0" * (-len(found) % 64) + b"\1" * 256 * tensors
    path.write_bytes(found[:cut])
    return path


def test_a_whole_gguf_passes_and_each_cut_of_it_does_not(tmp_path: Path) -> None:
    path = _gguf(tmp_path / "m.gguf")
    size = path.stat().st_size
    check_gguf(path, "m")
    for cut in (*range(9, size, 7), size - 1):
        _gguf(path, cut=cut)
        with pytest.raises(ConfigError, match="is cut short"):
            check_gguf(path, "m")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (POINTER.encode(), "is a Git LFS pointer (to 269,060,552 bytes)"),
        (b"", "is empty. Name a .gguf model"),
        (b"<!doctype html>", "is not a GGUF file (it does not start with 'GGUF')"),
        (b"GGUF\1\0\0\0" + b"0" * 50, "cannot be read: it is of version 1"),
        (b"GGUF\0\0\0\3" + b"0" * 50, "cannot be read: it is in big-endian order"),
        (b"GGUF\3\0\0\0" + b"\xff" * 50, "is cut short"),
    ],
)
def test_what_is_no_gguf(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        check_gguf(path, "m.gguf")
    assert sentence in str(caught.value)


def test_all_parts_of_a_gguf_are_needed(tmp_path: Path) -> None:
    path = _gguf(tmp_path / "m-00001-of-00003.gguf")
    _gguf(tmp_path / "m-00003-of-00003.gguf")
    with pytest.raises(ConfigError, match=r"is in 3 parts, of which m-00002-of-00003\.gguf is missing"):
        check_gguf(path, str(path))
    (tmp_path / "m-00002-of-00003.gguf").write_text(POINTER)
    with pytest.raises(ConfigError, match=r"m-00002-of-00003\.gguf in .* is a Git LFS pointer"):
        check_gguf(path, str(path))


def test_a_folder_for_llama_cpp(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="holds no GGUF file"):
        find_gguf(str(tmp_path))
    _gguf(tmp_path / "a.gguf")
    _gguf(tmp_path / "b.gguf")
    with pytest.raises(ConfigError, match=r"holds 2 GGUF files: .* Name the \.gguf file itself: a\.gguf, b\.gguf"):
        find_gguf(str(tmp_path))


def test_a_file_for_a_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"which this backend does not read\. Use --backend llamacpp"):
        check_file(_gguf(tmp_path / "m.gguf"), "./m.gguf")
    with pytest.raises(ConfigError, match="is a GGUF file"):
        check_file(_gguf(tmp_path / "renamed.bin"), "./renamed.bin")
    _save(tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match="is a file, and a model here is a folder"):
        check_file(tmp_path / "model.safetensors", "model.safetensors")
