"""``ModelInfo`` of a GGUF file: tokenizer, template and shape from its header, read once and cached."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from niah.engines.base import ModelInfo
from niah.engines.checkpoint.describe import describe_model
from niah.engines.checkpoint.gguf import is_alias, needs_conversion, parsed_once
from niah.engines.checkpoint.gguf_file import check_gguf, check_start
from niah.engines.checkpoint.gguf_special_tokens import set_bos_eos
from niah.errors import ConfigError, MissingDependency, StoreError, near
from niah.models.embedded import EMBEDDED, embedded_folder, embedded_gguf, file_revision, header_folder
from niah.models.shape import LayerShape
from niah.paths import as_path

_PART = re.compile(r"-(\d{5})-of-\d{5}\.gguf$")


def describe_gguf(model: str, *, template: str, date: str | None, swa_full: bool) -> ModelInfo:
    """What a plan needs to know of a GGUF model, loading no weights.

    Args:
        model: an embedded model's alias, a ``.gguf`` file, or a folder that holds one.
        swa_full: window layers keep all tokens, so they count as full ones.

    Raises:
        ConfigError: no GGUF file of that name, or one whose architecture transformers cannot read.
    """
    path = find_gguf(model)
    if not is_alias(model):  # the embedded ones have a checksum
        check_gguf(path, model)
    revision = file_revision(path)
    info = describe_model(
        str(_described(model, path, revision)),
        template=template,
        trust_remote_code=False,
        revision=None,
        needs_weights=False,
        date=date,
        as_engine=True,
    )
    shape = info.shape
    if shape is not None:
        layers = tuple(_as_full(layer) for layer in shape.layers) if swa_full else shape.layers
        shape = replace(shape, name=model, layers=layers, stored_weight_bytes=path.stat().st_size)
    # llama.cpp keeps float16 unless it is told otherwise, whatever the weights are
    return replace(info, name=model, source=str(path), revision=revision, shape=shape, reference_kv="fp16")


def _as_full(layer: LayerShape) -> LayerShape:
    kind: Literal["full"] = "full"
    return replace(layer, kind=kind, window=None) if layer.kind == "window" else layer


def find_gguf(model: str) -> Path:
    """The GGUF file of a model name.

    Raises:
        ConfigError: there is none, or more than one.
    """
    if is_alias(model):
        return embedded_gguf(model)
    path = as_path(model)
    if path.is_dir():
        files = sorted(path.glob("*.gguf"))
        # of a file in parts only the first is named
        first = [file for file in files if (part := _PART.search(file.name)) is None or part[1] == "00001"]
        if not first:
            other = " (it holds a model for --backend transformers)" if (path / "config.json").is_file() else ""
            raise ConfigError(
                f"the folder {model!r} holds no GGUF file{other}: llama.cpp needs one. Name the .gguf file itself."
            )
        if len(first) > 1:
            named = ", ".join(file.name for file in first[:4]) + (" …" if len(first) > 4 else "")
            raise ConfigError(
                f"the folder {model!r} holds {len(first)} GGUF files: llama.cpp needs one. Name the .gguf file itself: "
                f"{named}."
            )
        path = first[0]
    if not path.is_file():
        raise ConfigError(
            f"no GGUF model {model!r}.{near(model, EMBEDDED)} A .gguf file or a folder that holds one works too."
        )
    check_start(path, model)
    return path.resolve()


def _described(model: str, path: Path, revision: str) -> Path:
    """A folder with the file's config and tokenizer, created at first use."""
    if is_alias(model) and not needs_conversion(model):
        return embedded_folder(model)
    target = header_folder(path.stem, revision)
    if (target / "config.json").is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".gguf-", dir=target.parent))
    except OSError as err:
        raise StoreError(f"the model cache {str(target.parent)!r} cannot be written: {err}. Set NIAH_CACHE.") from err
    try:
        _write_header(model, path, staging)
        if not (target / "config.json").is_file():
            staging.replace(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def _write_header(model: str, path: Path, target: Path) -> None:
    try:
        import gguf  # noqa: F401 - asked for here so that its absence is one sentence
    except ImportError as err:
        raise MissingDependency("gguf", "llamacpp", "reading a GGUF file") from err
    from transformers import AutoConfig, AutoTokenizer

    extra: dict[str, Any] = {"gguf_file": path.name}
    try:
        with parsed_once():
            config = AutoConfig.from_pretrained(path.parent, **extra)
            tokenizer = AutoTokenizer.from_pretrained(path.parent, **extra)
            set_bos_eos(tokenizer, path)
    except (OSError, ValueError, KeyError, IndexError, NotImplementedError, AttributeError) as err:
        reason = str(err).strip().splitlines()[0] if str(err).strip() else type(err).__name__
        raise ConfigError(f"the GGUF file {model!r} cannot be read: {reason[:300]}") from err
    config.save_pretrained(target)
    tokenizer.save_pretrained(target)
