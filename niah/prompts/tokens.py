"""Tokenizers as the rest of the code sees them, and the text that a prompt template puts around its content."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from niah.errors import ConfigError
from niah.types import Prompt

if TYPE_CHECKING:
    from tokenizers import Tokenizer as RustTokenizer


class Tokenizer(Protocol):
    """Text to token ids and back, piece by piece: no method adds special tokens or a leading space of its own.

    Attributes:
        name: label for people.
        digest: hash of the vocabulary and rules; equal digests give equal ids.
    """

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    def encode(self, text: str) -> list[int]:
        """Ids of template text: strings such as ``<|im_end|>`` become their special token."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of plain texts: a special token's name inside them is ordinary text, so a haystack cannot end a turn."""
        ...

    def encode_offsets(self, text: str) -> tuple[list[int], list[int]]:
        """Ids of a plain text, and for each id the index of the first character that it holds a part of."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids, special tokens included; bytes that form no character become U+FFFD."""
        ...


@runtime_checkable
class LibraryTokenizer(Tokenizer, Protocol):
    """A tokenizer that knows what the model's own library makes of the text around a haystack.

    The one exception to the rule above: many tokenizers put a blank before the first word of a text.
    """

    def encode_start(self, text: str) -> list[int]:
        """Ids of template text that begins a prompt."""
        ...

    def encode_rest(self, text: str) -> list[int]:
        """Ids of template text that goes on after other text."""
        ...


class Counter(Protocol):
    """Counts a prompt that is sent as text, as the one who reads it does: template, instruction and all.

    Attributes:
        name: who counts, for the row; starts with ``estimate`` where the number is one.
        is_cheap: whether every prompt may be counted, or only the longest of a context.
        headroom: at most so many ids of our tokenizer stand for one counted token.
    """

    @property
    def name(self) -> str: ...

    @property
    def is_cheap(self) -> bool: ...

    @property
    def headroom(self) -> float: ...

    def count(self, prompt: Prompt) -> int:
        """Tokens of the prompt.

        Raises:
            NiahError: it cannot be counted.
        """
        ...


@dataclass(frozen=True, slots=True)
class Template:
    """Text before and after the user's content, special tokens written out; both empty for plain completion.

    Attributes:
        digest: of all that changes a prompt; filled in when left empty.
        start: special tokens before everything, where the model's own files want them and the prefix has them not.
        date: ISO day that the prefix or suffix prints; empty where they print none.
        lead: whether an answer may be begun after the suffix.
        notes: what is in force, for the record of the run.
    """

    name: str
    prefix: str
    suffix: str
    digest: str = ""
    start: str = ""
    date: str = ""
    lead: bool = True
    notes: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.digest:
            parts = [self.start + self.prefix, self.suffix]
            canonical = json.dumps(parts if self.lead else [*parts, "no lead"])
            object.__setattr__(self, "digest", hashlib.blake2b(canonical.encode(), digest_size=8).hexdigest())


COMPLETION = Template("completion", "", "")


class FastTokenizer:
    """A ``tokenizers.Tokenizer`` made fit for assembling prompts from pieces.

    Many tokenizers put a space before any text that they get and cut spaces from offsets. Both would make the ids
    of a piece depend on where it was cut, so a private copy is used with these habits switched off. Head and tail of a
    prompt keep them where the ids are sent: there the model has seen what its library makes.

    Args:
        tokenizer: the library's object; it is copied, not changed.
        name: label for people.
        as_library: ``encode_start`` and ``encode_rest`` keep the habits; not for prompts that are sent as text.

    Raises:
        ConfigError: the tokenizer does not give back a plain sentence as it was (lower-casing, dropped spaces).
    """

    def __init__(self, tokenizer: RustTokenizer, name: str, *, as_library: bool = False) -> None:
        from tokenizers import Tokenizer as Rust

        # to_str orders the vocabulary by id, so the digest does not depend on how the tokenizer was loaded
        source = tokenizer.to_str()
        spec = json.loads(source)
        bare = _without_habits(spec)
        self._rust = Rust.from_str(json.dumps(bare))
        self._library = self._rust
        self._lock = Lock()
        self._name = name
        if as_library and _ids_differ(spec, bare):
            kept = dict(bare, normalizer=spec.get("normalizer"), pre_tokenizer=spec.get("pre_tokenizer"))
            self._library = Rust.from_str(json.dumps(kept))
            source += "as library"
        self._digest = hashlib.blake2b(source.encode(), digest_size=16).hexdigest()
        probe = "One fact.\n\nThe number for Oslo is 7412839."
        seen = self.decode(self.encode(probe))
        if seen != probe:
            raise ConfigError(
                f"tokenizer {name!r} gives {seen!r} back for {probe!r}: a needle could not be found again in its "
                "tokens. Use a tokenizer that keeps case, spaces and line breaks."
            )

    @classmethod
    def from_file(cls, path: Path, name: str = "", *, as_library: bool = False) -> FastTokenizer:
        """From a ``tokenizer.json``.

        Raises:
            ConfigError: the file is missing or is not a tokenizer.
        """
        from tokenizers import Tokenizer as Rust

        if not path.is_file():
            raise ConfigError(f"tokenizer file {str(path)!r} does not exist; give the path of a tokenizer.json.")
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as err:
            raise ConfigError(f"tokenizer file {str(path)!r} cannot be read: {err}.") from err
        if not isinstance(data, dict) or "model" not in data:
            raise ConfigError(
                f"tokenizer file {str(path)!r} has no 'model'; give a tokenizer.json of a fast tokenizer."
            )
        return cls(Rust.from_file(str(path)), name or path.parent.name, as_library=as_library)

    @property
    def name(self) -> str:
        return self._name

    @property
    def digest(self) -> str:
        return self._digest

    def encode(self, text: str) -> list[int]:
        with self._lock:
            return list(self._rust.encode(text, add_special_tokens=False).ids)

    def encode_start(self, text: str) -> list[int]:
        with self._lock:
            return list(self._library.encode(text, add_special_tokens=False).ids)

    def encode_rest(self, text: str) -> list[int]:
        if self._library is not self._rust:
            for before in _BEFORE:
                known, whole = self.encode_start(before), self.encode_start(before + text)
                if whole[: len(known)] == known:
                    return whole[len(known) :]
        return self.encode(text)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        with self._lock:
            # the switch belongs to the whole object, hence the lock around every use
            self._rust.encode_special_tokens = True
            try:
                encodings = self._rust.encode_batch_fast(list(texts), add_special_tokens=False)
            finally:
                self._rust.encode_special_tokens = False
        return [list(encoding.ids) for encoding in encodings]

    def encode_offsets(self, text: str) -> tuple[list[int], list[int]]:
        with self._lock:
            self._rust.encode_special_tokens = True
            try:
                encoding = self._rust.encode(text, add_special_tokens=False)
            finally:
                self._rust.encode_special_tokens = False
        return list(encoding.ids), [start for start, _ in encoding.offsets]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._rust.decode(list(ids), skip_special_tokens=False))


# ends of a text that few tokenizers fuse with what follows
_BEFORE = ("Read on.", "Read on", "One fact;", "1")


def _ids_differ(spec: dict[str, Any], bare: dict[str, Any]) -> bool:
    """Whether switching habits off can change ids, and not only offsets and decoded text."""
    return any(_for_ids(spec.get(stage)) != _for_ids(bare.get(stage)) for stage in ("normalizer", "pre_tokenizer"))


def _for_ids(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _for_ids(value) for name, value in part.items() if name != "trim_offsets"}
    return [_for_ids(value) for value in part] if isinstance(part, list) else part


def _without_habits(spec: dict[str, Any]) -> dict[str, Any]:
    """The tokenizer's description without added spaces, trimmed offsets, truncation and padding."""
    changed: dict[str, Any] = dict(spec, truncation=None, padding=None, post_processor=None)
    for stage in ("normalizer", "pre_tokenizer", "decoder"):
        changed[stage] = _without_spaces(spec.get(stage))
    return changed


def _without_spaces(part: dict[str, Any] | None) -> dict[str, Any] | None:
    """One stage without members that add a leading space, or that strip it again when decoding."""
    if part is None or part["type"] == "Prepend" or (part["type"] == "Strip" and part.get("content") == " "):
        return None
    if part["type"] == "Sequence":
        key = next(k for k in ("normalizers", "pretokenizers", "decoders") if k in part)
        members = [_without_spaces(member) for member in part[key]]
        return dict(part, **{key: [member for member in members if member is not None]})
    if part["type"] == "Metaspace":
        rest = {k: v for k, v in part.items() if k != "add_prefix_space"}
        return dict(rest, prepend_scheme="never")
    if part["type"] == "ByteLevel":
        return dict(part, add_prefix_space=False, trim_offsets=False)
    return part


_PIECE = re.compile(r" ?\w+|\s|[^\w\s]")
_CHUNK_BYTES = 3


@lru_cache(maxsize=1 << 16)
def _piece_ids(piece: str) -> tuple[int, ...]:
    data = piece.encode()
    chunks = (data[i : i + _CHUNK_BYTES] for i in range(0, len(data), _CHUNK_BYTES))
    # a leading 1 byte tells b"a" from b"\0a" and makes decoding exact
    return tuple(int.from_bytes(b"\1" + chunk, "big") for chunk in chunks)


class WordTokenizer:
    """A tokenizer without a vocabulary, for backends without a model: ids are a pure function of the text.

    Text is cut into words (with the space before them), white space and punctuation marks; each piece is cut into
    runs of up to three UTF-8 bytes, and a run is one id: its bytes as a big-endian number with a 1 in front, so
    below 2²⁵. ``decode(encode(text)) == text`` for every text that UTF-8 can write.
    """

    name = "words"
    digest = hashlib.blake2b(b"words 1: up to three bytes", digest_size=16).hexdigest()

    def encode(self, text: str) -> list[int]:
        return [token for match in _PIECE.finditer(text) for token in _piece_ids(match.group())]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def encode_offsets(self, text: str) -> tuple[list[int], list[int]]:
        ids: list[int] = []
        starts: list[int] = []
        for match in _PIECE.finditer(text):
            piece = match.group()
            owners = [i for i, char in enumerate(piece, match.start()) for _ in char.encode()]
            ids += _piece_ids(piece)
            starts += owners[::_CHUNK_BYTES]
        return ids, starts

    def decode(self, ids: Sequence[int]) -> str:
        runs = (token.to_bytes(_CHUNK_BYTES + 1, "big").lstrip(b"\0")[1:] for token in ids)
        return b"".join(runs).decode("utf-8", errors="replace")
