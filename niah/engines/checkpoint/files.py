"""Checks a model's files before loading: what is wrong with them in one sentence, and what to do.

Pure: no engine and no library is imported, and weights are not read beyond their headers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from niah.errors import ConfigError

LFS_MARK = b"version https://git-lfs"
_LFS_SIZE = re.compile(r"^size (\d+)$", re.MULTILINE)
_LFS_BYTES = 1024
# what the library that reads the format allows at most
_HEADER_BYTES = 100_000_000
_LENGTH_BYTES = 8
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.(?:safetensors|bin)$")
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tekken.json",
    "tokenizer.model.v3",
)
_TOKENIZER_PATTERNS = ("*.tiktoken", "tokenization_*.py", "*.spm", "*.model")
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-*.bin")
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_ELSEWHERE = {
    "tf_model.h5": "TensorFlow weights",
    "flax_model.msgpack": "Flax weights",
    "*.onnx": "ONNX files",
    "onnx/*.onnx": "ONNX files",
    "consolidated*.pth": "weights in their maker's own format",
    "*.pth": "weights in their maker's own format",
    "*.mlpackage": "Core ML files",
}


def check_file(path: Path, model: str) -> None:
    """Refuse a model name that is a file, where a folder is needed.

    Raises:
        ConfigError: always; it says what the file is.
    """
    refuse_pointer(path, path.name, path.parent)
    if is_gguf(path):
        raise ConfigError(
            f"{model!r} is a GGUF file, which this backend does not read. Use --backend llamacpp with the same --model."
        )
    raise ConfigError(
        f"{model!r} is a file, and a model here is a folder: name the one that holds it, {_parent(path)}."
    )


def _parent(path: Path) -> str:
    return repr(str(path.parent))


def is_gguf(path: Path) -> bool:
    """Whether a file is GGUF, by its first bytes, or by its name where it is empty."""
    start = _start(path, 4)
    return start == b"GGUF" or (path.suffix.lower() == ".gguf" and not start)


def check_folder(folder: Path, model: str, *, needs_weights: bool = True) -> None:
    """Check all files that loading a model would read.

    Args:
        model: as the user named it.
        needs_weights: ``False`` for a folder that only describes a model.

    Raises:
        ConfigError: files are missing, cut short, not what they should be, or for another program.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as err:
        raise ConfigError(f"the model folder {model!r} cannot be read: {err.strerror}.") from err
    if "config.json" not in names:
        raise _no_config(folder, model, names)
    read_json(folder / "config.json", model)
    _check_tokenizer(folder, model, names)
    if needs_weights:
        _check_weights(folder, model)


def _no_config(folder: Path, model: str, names: list[str]) -> ConfigError:
    ggufs = [name for name in names if name.lower().endswith(".gguf")]
    if not names:
        return ConfigError(f"the model folder {model!r} is empty. Download the model into it, or name another folder.")
    if "adapter_config.json" in names:
        return ConfigError(_adapter(folder, model))
    if ggufs:
        how = f"with --model {folder / ggufs[0]}" if len(ggufs) == 1 else f"and name one of {', '.join(ggufs[:4])}"
        return ConfigError(
            f"the folder {model!r} holds GGUF files only, which this backend does not read: use --backend llamacpp "
            f"{how}."
        )
    if "snapshots" in names:
        held = sorted(path.name for path in (folder / "snapshots").iterdir())
        hint = f"name {folder / 'snapshots' / held[0]}" if len(held) == 1 else "name one of the folders in 'snapshots'"
        return ConfigError(f"{model!r} is the hub's cache of a model and not the model itself: {hint}.")
    below = sorted(path.parent.name for path in folder.glob("*/config.json"))
    hint = f"name the one that has, such as {str(folder / below[0])!r}" if below else "name the one that has"
    return ConfigError(f"the folder {model!r} has no config.json, so it is not a model: {hint}.")


def _adapter(folder: Path, model: str) -> str:
    base = read_json(folder / "adapter_config.json", model).get("base_model_name_or_path")
    of = f" of {base!r}" if isinstance(base, str) and base else ""
    return (
        f"the folder {model!r} holds an adapter (LoRA){of} and no model. Merge it into its base (merge_and_unload() of "
        "the package peft, then save_pretrained) and give that folder."
    )


def read_json(path: Path, model: str) -> dict[str, Any]:
    """Read a JSON object from a model's folder.

    Raises:
        ConfigError: the file cannot be read, is no JSON, or holds something else.
    """
    refuse_pointer(path, path.name, path.parent)
    try:
        raw = path.read_bytes()
    except OSError as err:
        raise ConfigError(f"{path.name} of the model {model!r} cannot be read: {err.strerror}.") from err
    again = "Download or save the model anew."
    if not raw.strip(b"\0 \t\r\n"):
        raise ConfigError(f"{path.name} of the model {model!r} is empty. {again}")
    try:
        found = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as err:
        raise ConfigError(f"{path.name} of the model {model!r} is no UTF-8 text. {again}") from err
    except (ValueError, RecursionError) as err:
        place = f" ({err.msg} in line {err.lineno})" if isinstance(err, json.JSONDecodeError) else ""
        raise ConfigError(f"{path.name} of the model {model!r} is no JSON, or is cut short{place}. {again}") from err
    if not isinstance(found, dict):
        raise ConfigError(f"{path.name} of the model {model!r} holds no JSON object. {again}")
    return found


def _check_tokenizer(folder: Path, model: str, names: list[str]) -> None:
    present = [name for name in _TOKENIZER_FILES if name in names]
    if not present and not any(any(folder.glob(pattern)) for pattern in _TOKENIZER_PATTERNS):
        raise ConfigError(
            f"the model {model!r} has no tokenizer: none of tokenizer.json, tokenizer.model or vocab.json is in its "
            "folder. Copy the tokenizer's files from the model it was made from."
        )
    for name in present:
        if name.endswith(".json"):
            read_json(folder / name, model)
        else:
            refuse_pointer(folder / name, name, folder)
            if not (folder / name).stat().st_size:
                raise ConfigError(f"{name} of the model {model!r} is empty. Download or save the model anew.")
    for name in ("tokenizer_config.json", "special_tokens_map.json", "generation_config.json"):
        if name in names:
            read_json(folder / name, model)


def _check_weights(folder: Path, model: str) -> None:
    for name in _INDEXES:
        if (folder / name).is_file() and not (folder / name.removesuffix(".index.json")).is_file():
            _check_shards(folder, model, name)
            return
    files = sorted(folder.glob("*.safetensors"))
    whole = [path for path in files if path.name != "adapter_model.safetensors"]
    if not whole:
        whole = sorted(path for pattern in _PICKLES for path in folder.glob(pattern))
    if not whole:
        raise _no_weights(folder, model)
    main = [path for path in whole if path.name in ("model.safetensors", "pytorch_model.bin")]
    chosen = main or whole
    _check_numbers(chosen, model)
    for path in chosen:
        check_weights_file(path, model)


def _check_shards(folder: Path, model: str, index: str) -> None:
    places = read_json(folder / index, model).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise ConfigError(f"{index} of the model {model!r} has no 'weight_map'. Download or save the model anew.")
    shards = sorted({str(name) for name in places.values()})
    _refuse_missing([name for name in shards if not (folder / name).is_file()], len(shards), model)
    for name in shards:
        check_weights_file(folder / name, model)


def _check_numbers(files: Iterable[Path], model: str) -> None:
    """Check shards without an index by the count in their names."""
    found = {path.name: match for path in files if (match := _SHARD.search(path.name))}
    if not found:
        return
    name, match = next(iter(found.items()))
    stem, total, suffix = name[: match.start()], int(match[2]), name.rpartition(".")[2]
    wanted = [f"{stem}-{number:05d}-of-{total:05d}.{suffix}" for number in range(1, total + 1)]
    _refuse_missing([name for name in wanted if name not in found], total, model)


def _refuse_missing(missing: list[str], total: int, model: str) -> None:
    if not missing:
        return
    named = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
    some = "a weight file is" if len(missing) == 1 else f"{len(missing)} weight files are"
    raise ConfigError(f"{some} missing of the {total} of the model {model!r}: {named}. Download what is missing.")


def _no_weights(folder: Path, model: str) -> ConfigError:
    if (folder / "adapter_config.json").is_file():
        return ConfigError(_adapter(folder, model))
    ggufs = sorted(folder.glob("*.gguf"))
    if ggufs:
        return ConfigError(
            f"the weights in {model!r} are GGUF files, which this backend does not read: use --backend llamacpp with "
            f"--model {ggufs[0]}."
        )
    for pattern, what in _ELSEWHERE.items():
        if any(folder.glob(pattern)):
            return ConfigError(
                f"the model {model!r} holds {what} only, which no backend here reads. Get its safetensors weights."
            )
    return ConfigError(
        f"the model folder {model!r} has no weights: no *.safetensors and no pytorch_model.bin. Download them into it."
    )


def check_weights_file(path: Path, model: str) -> None:
    """Whether a file of weights is whole, by its header.

    Raises:
        ConfigError: it is a pointer, cut short or damaged.
    """
    refuse_pointer(path, path.name, path.parent)
    problem = safetensors_problem(path) if path.suffix == ".safetensors" else pickle_problem(path)
    if problem:
        raise ConfigError(f"{path.name} of the model {model!r} {problem}. Download or save it anew.")


def safetensors_problem(path: Path) -> str:
    """What is wrong with a safetensors file, or nothing.

    Source of the format: the safetensors README: an 8-byte little-endian length, a JSON header, then the tensors.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if size < _LENGTH_BYTES:
            return f"is cut short: it has {size:,} bytes"
        if length > _HEADER_BYTES:
            return "is no safetensors file, or is damaged: its first bytes give no length of a header"
        if length > size - _LENGTH_BYTES:
            return f"is cut short: its header alone has {length:,} bytes, and the file {size:,}"
        header = file.read(length)
    try:
        tensors = json.loads(header)
        ends = [entry["data_offsets"][1] for name, entry in tensors.items() if name != "__metadata__"]
        wanted = _LENGTH_BYTES + length + max(ends, default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return "is damaged: its header cannot be read"
    if size < wanted:
        return f"is cut short: it has {size:,} of {wanted:,} bytes"
    return f"is damaged: it has {size:,} bytes where its header gives {wanted:,}" if size > wanted else ""


def pickle_problem(path: Path) -> str:
    """What is wrong with a file of ``torch.save``, as far as it shows without unpickling; or nothing."""
    import zipfile

    if not path.stat().st_size:
        return "is empty"
    # the directory of an archive stands at its end
    if _start(path, 2) == b"PK" and not zipfile.is_zipfile(path):
        return "is cut short: its end is missing"
    return ""


def refuse_pointer(path: Path, name: str, where: Path) -> None:
    """Refuse what Git LFS leaves in place of a file.

    Raises:
        ConfigError: it is such a pointer.
    """
    if not _start(path, len(LFS_MARK)).startswith(LFS_MARK):
        return
    text = _start(path, _LFS_BYTES).decode("ascii", "replace")
    size = _LFS_SIZE.search(text)
    held = f" (to {int(size[1]):,} bytes)" if size else ""
    raise ConfigError(
        f"{name} in {str(where)!r} is a Git LFS pointer{held} and not the file itself. Run 'git lfs pull' in that "
        "folder, or download the model anew."
    )


def _start(path: Path, count: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""  # the next reader reports why
