"""Tokenizers for models behind an API: the model's own where its files are here, else one whose counts are near."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from niah.engines.hosted.adapter import call_of
from niah.errors import ConfigError, near
from niah.models.embedded import EMBEDDED, embedded_folder
from niah.prompts.tokens import FastTokenizer, Template, Tokenizer, WordTokenizer
from niah.types import Prompt

# between question and answer, so that the two can be told apart; a server's own template stands there in its place
TEXT_TEMPLATE = Template("messages", "", "\n")
# around the one message of a chat with OpenAI's models: <|start|>user<|message|>…<|end|> and the reply's start
CHAT_OVERHEAD_TOKENS = 7
_ENCODINGS = ("o200k_base", "cl100k_base", "o200k_harmony", "llama3", "qwen3")
_DEFAULT_ENCODING = "o200k_base"
# ids of one tokenizer for an id of another: natural prose differs by a quarter at most
_HEADROOM = 1.5
_WORDS_HEADROOM = 4.0


class QuickTokenizer:
    """A ``quicktok`` encoding (ids equal to tiktoken's) as ``niah.prompts.tokens.Tokenizer``."""

    def __init__(self, name: str) -> None:
        import quicktok

        self._encoding: Any = quicktok.get_encoding(name)
        self.name = name

    @property
    def digest(self) -> str:
        return _quick_digest(self.name)

    def encode(self, text: str) -> list[int]:
        return list(self._encoding.encode_with_special(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(self._encoding.encode_ordinary(text)) for text in texts]

    def encode_offsets(self, text: str) -> tuple[list[int], list[int]]:
        ids = list(self._encoding.encode_ordinary(text))
        owners = [i for i, char in enumerate(text) for _ in char.encode()]
        starts, at = [], 0
        for token in ids:
            starts.append(owners[at])
            at += len(self._encoding.decode_single_token_bytes(token))
        return ids, starts

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._encoding.decode(list(ids)))


def _quick_digest(name: str) -> str:
    return hashlib.blake2b(f"quicktok {name}".encode(), digest_size=16).hexdigest()


@cache
def tokenizer_for(wanted: str, model: str) -> Tokenizer:
    """The tokenizer that cuts the haystack: the one asked for, the model's own where it lies here, or a near one.

    Raises:
        ConfigError: no tokenizer of that name.
    """
    if wanted != "auto":
        return _named(wanted)
    own = _own(model)
    if own is not None:
        return own
    if importlib.util.find_spec("quicktok") is None:
        return WordTokenizer()
    import quicktok

    try:
        return QuickTokenizer(str(quicktok.encoding_for_model(model).name))
    except (KeyError, RuntimeError):
        return QuickTokenizer(_DEFAULT_ENCODING)


def _own(model: str) -> Tokenizer | None:
    folder = embedded_folder(model) if model in EMBEDDED else Path(model)
    file = folder / "tokenizer.json"
    try:
        return FastTokenizer.from_file(file, model) if file.is_file() else None
    except OSError:
        return None  # a model's name need not be fit for a path


def _named(name: str) -> Tokenizer:
    if name == "words":
        return WordTokenizer()
    if name in _ENCODINGS:
        if importlib.util.find_spec("quicktok") is None:
            raise ConfigError(f"backend.tokenizer {name!r} needs the package quicktok-v1: pip install quicktok-v1")
        return QuickTokenizer(name)
    if name in EMBEDDED or Path(name).exists():
        folder = embedded_folder(name) if name in EMBEDDED else Path(name)
        return FastTokenizer.from_file(folder / "tokenizer.json" if folder.is_dir() else folder, name)
    raise ConfigError(f"no tokenizer named {name!r}.{near(name, ['auto', 'words', *_ENCODINGS, *EMBEDDED])}")


def packaged_tokenizer(digest: str) -> Tokenizer | None:
    """The vocabulary of that digest, where an installed package brings it along."""
    if importlib.util.find_spec("quicktok") is None:
        return None
    name = next((name for name in _ENCODINGS if _quick_digest(name) == digest), None)
    return None if name is None else QuickTokenizer(name)


def headroom(tokenizer: Tokenizer, model: str, wanted: str) -> float:
    """How many of its ids stand for one token of the model at most."""
    if isinstance(tokenizer, WordTokenizer):
        return _WORDS_HEADROOM
    is_own = isinstance(tokenizer, FastTokenizer) and wanted in ("auto", model)
    return 1.0 if is_own else _HEADROOM


@dataclass(frozen=True)
class LocalCounter:
    """Counts with the tokenizer that is here, plus what a chat template adds: an estimate."""

    tokenizer: Tokenizer
    overhead_tokens: int
    headroom: float

    @property
    def is_cheap(self) -> bool:
        return True

    @property
    def name(self) -> str:
        added = f" + {self.overhead_tokens}" if self.overhead_tokens else ""
        return f"estimate: {self.tokenizer.name}{added}"

    def count(self, prompt: Prompt) -> int:
        call = call_of(prompt, self.tokenizer)
        return len(self.tokenizer.encode_batch([call.user_text + call.assistant_prefill])[0]) + self.overhead_tokens
