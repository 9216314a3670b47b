"""BOS and EOS of a GGUF file: which ones it adds to a text, and a tokenizer that does the same.

Keys and the defaults where a file has none are those of llama.cpp's ``src/llama-vocab.cpp``: older files have no
``add_bos_token``, and then the kind of tokenizer decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# tokenizer types (tokenizer.ggml.model) that add BOS or EOS where the file has no key for it
_BEGINS, _ENDS = ("llama", "bert"), ("t5",)
# of byte-level BPE (gpt2), those splits (tokenizer.ggml.pre) whose texts begin with one
_BEGINNING_SPLITS = (
    "llama3",
    "llama-v3",
    "llama-bpe",
    "falcon3",
    "falcon-h1",
    "pixtral",
    "midm-2.0",
    "lfm2",
    "tekken",
    "chameleon",
)
_DEFAULT_IDS: Mapping[str, tuple[int | None, int | None]] = {"llama": (1, 2), "bert": (101, 102), "t5": (None, 1)}


def bos_eos_ids(header: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Ids of BOS and EOS; None where the file adds none.

    Args:
        header: the file's keys, without arrays.
    """
    kind, split = header.get("tokenizer.ggml.model"), header.get("tokenizer.ggml.pre")
    begins = kind in _BEGINS or (kind == "gpt2" and split in _BEGINNING_SPLITS)
    bos, eos = _DEFAULT_IDS.get(str(kind), (None, None))
    bos, eos = header.get("tokenizer.ggml.bos_token_id", bos), header.get("tokenizer.ggml.eos_token_id", eos)
    adds_bos = bool(header.get("tokenizer.ggml.add_bos_token", begins))
    adds_eos = bool(header.get("tokenizer.ggml.add_eos_token", kind in _ENDS))
    return (bos if adds_bos else None), (eos if adds_eos else None)


def set_bos_eos(tokenizer: Any, gguf_file: Path) -> None:
    """Make a tokenizer converted from a GGUF file add BOS and EOS as the file says; some transformers releases do not.

    Args:
        tokenizer: of transformers; changed only where it differs from the file.
    """
    from tokenizers.processors import TemplateProcessing

    begin, end = bos_eos_ids(_header(gguf_file))
    bare = list(tokenizer("x", add_special_tokens=False).input_ids)
    wanted = [*([begin] if begin is not None else []), *bare, *([end] if end is not None else [])]
    if list(tokenizer("x").input_ids) == wanted:
        return
    first, last = (None if token is None else str(tokenizer.convert_ids_to_tokens(token)) for token in (begin, end))
    single = [*([first] if first else []), "$A", *([last] if last else [])]
    second = [f"{part}:1".replace("$A", "$B") for part in single]
    known = {token: number for token, number in ((first, begin), (last, end)) if token and number is not None}
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=single, pair=[*single, *second], special_tokens=list(known.items())
    )


def _header(gguf_file: Path) -> dict[str, Any]:
    """The file's metadata without arrays."""
    import gguf

    library: Any = gguf
    fields = library.GGUFReader(gguf_file).fields
    array = library.GGUFValueType.ARRAY
    return {name: field.contents() for name, field in fields.items() if field.types and field.types[0] != array}
