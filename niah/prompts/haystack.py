"""The haystack protocol: a stream of sentences that joins to a text, and does not repeat itself unless it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from niah.registry import Plugin


class HaystackOptions(BaseModel):
    """Options of a source, set by ``--set haystack.NAME=…``; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


C = TypeVar("C", bound=HaystackOptions)


class Haystack(Protocol):
    """An opened source.

    Attributes:
        digest: hash of everything that decides the text, without the stream number.
        repeats: whether blocks of text may come again within one stream.
        language: ISO 639-1 code when known, else empty.
    """

    digest: str
    repeats: bool
    language: str

    def segments(self, stream: int) -> Iterator[str]:
        """Sentences with their leading white space; joined they are the text.

        The first segment of a paragraph starts with a blank line, the others with a space (or nothing where the
        language uses none), except the very first, which starts with neither. Streams with other numbers are other
        texts (another seed, another starting point). Ends when the source is used up.
        """
        ...


@dataclass(frozen=True)
class HaystackPlugin(Plugin, Generic[C]):
    """A source: its options and how to open it. ``open`` gets options and, for text and hf, what follows the name.

    Attributes:
        is_made: its text comes from options alone, whatever ``argument`` says: no file and no connection is opened, so
            it can be made again for a run folder that somebody else wrote.

    Raises (from ``open``):
        ConfigError: the source cannot be read, is empty or is not text.
    """

    kind: ClassVar[str] = "haystacks"
    options: type[C]
    open: Callable[[C, str], Haystack]
    install: str = ""
    is_made: bool = False
