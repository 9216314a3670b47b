"""The task protocol: which needles go in, what is asked, what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from niah.registry import Plugin
from niah.types import Case


class TaskOptions(BaseModel):
    """Options of a task, set by ``--set task.NAME=…``; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


T = TypeVar("T", bound=TaskOptions)

# True when a word, number or sentence stands in the haystack's text: such a key, value or needle is not used
Collides = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class ContextLayout:
    """Depths of the needles in one context. ``asked`` are cells of the grid; ``hidden`` only make it harder."""

    asked: tuple[float, ...]
    hidden: tuple[float, ...] = ()


@dataclass(frozen=True)
class TaskPlugin(Plugin, Generic[T]):
    """A task.

    Attributes:
        layouts: how the grid's depths share contexts.
        make: cases of one context, in the order of ``layout.asked``; decided by options, seed and layout alone
            (and by the haystack only where a candidate key or value would collide with it).
        is_complete: True when a reply that starts so cannot change its judgement any more, so decoding may stop.
        rungs: changes of the options from easy to hard, for the depths asked; None when there is nothing to choose.
        version: goes into every cell's identity; raise it when the same seed makes another case.
    """

    kind: ClassVar[str] = "tasks"
    version: int
    options: type[T]
    layouts: Callable[[T, Sequence[float]], list[ContextLayout]]
    make: Callable[[T, int, ContextLayout, Collides], list[Case]]
    is_complete: Callable[[str, Case], bool]
    rungs: Callable[[T, Sequence[float]], Sequence[Mapping[str, Any]]] | None = None
