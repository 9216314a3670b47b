"""``KVPreset``: a KV setting by name, with arguments; one file each in ``presets``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from niah.kv.config import KVConfig
from niah.registry import Plugin


@dataclass(frozen=True, slots=True)
class KVPreset(Plugin):
    """A named KV setting.

    Attributes:
        make: from the preset's arguments (already converted to int, float or str) to a ``KVConfig``.
        parameters: names of the arguments with their defaults; None marks a required one.
        paper: where the method comes from.
        rest: what an open list of arguments without names holds (``skip(0,1,-1)``: layers); empty where there is none.
        example: a whole setting that shows the preset in use, for lists; needed where the name alone is not one.
    """

    kind: ClassVar[str] = "kv"
    make: Callable[..., KVConfig]
    parameters: Mapping[str, int | float | str | None] | None = None
    paper: str = ""
    rest: str = ""
    example: str = ""
