"""Converts embedded GGUF weights to a bf16 Hugging Face folder in the cache, once."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from niah.engines.checkpoint.gguf_special_tokens import set_bos_eos
from niah.errors import MissingDependency, StoreError
from niah.models.embedded import EMBEDDED, embedded_folder, embedded_gguf


def converted_folder(alias: str) -> Path:
    """The converted folder of an embedded model, created if missing.

    Raises:
        MissingDependency: a package needed for the conversion is missing.
        StoreError: the cache folder cannot be written.
    """
    target = embedded_folder(alias)
    if (target / "config.json").is_file():
        return target
    gguf_file = embedded_gguf(alias)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{alias}-", dir=target.parent))
    except OSError as err:
        raise StoreError(f"the model cache {str(target.parent)!r} cannot be written: {err}. Set NIAH_CACHE.") from err
    try:
        _convert(gguf_file, staging)
        # another process may have converted it meanwhile; its folder has the same files
        if not (target / "config.json").is_file():
            staging.replace(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


@contextmanager
def parsed_once() -> Iterator[None]:
    """Parse the file's header once: config, weights and tokenizer each read it anew, five seconds a time."""
    import gguf

    library: Any = gguf
    reader = library.GGUFReader
    library.GGUFReader = cache(reader)
    try:
        yield
    finally:
        library.GGUFReader = reader


def _convert(gguf_file: Path, target: Path) -> None:
    # read when tqdm is first imported: the one bar that transformers' own switch does not reach
    os.environ.setdefault("TQDM_DISABLE", "1")
    try:
        import gguf  # noqa: F401 - asked for here so that its absence is one sentence
    except ImportError as err:
        raise MissingDependency("gguf", "smollm2", "converting an embedded model") from err
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    extra: dict[str, Any] = {}
    try:
        from transformers import GgufConfig

        extra["quantization_config"] = GgufConfig(dequantize=True)
    except ImportError:  # older releases always expand the blocks
        pass
    with parsed_once():
        model = AutoModelForCausalLM.from_pretrained(
            gguf_file.parent, gguf_file=gguf_file.name, dtype=torch.bfloat16, **extra
        )
        tokenizer = AutoTokenizer.from_pretrained(gguf_file.parent, gguf_file=gguf_file.name)
        set_bos_eos(tokenizer, gguf_file)
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    for path in target.iterdir():
        path.chmod(0o644)


def is_alias(model: str) -> bool:
    return model in EMBEDDED


def needs_conversion(model: str) -> bool:
    """True when the next use of an embedded model converts it first (about half a minute)."""
    return is_alias(model) and not (embedded_folder(model) / "config.json").is_file()
