"""Events of a run, for displays and logs. A sink that fails never stops the run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from niah.store.schema import Row


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events."""


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """``done`` cells are kept from before, ``failed_before`` of the others had failed."""

    folder: str
    cells: int
    done: int
    failed_before: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class CellsAdded(Event):
    """``--trials auto`` has granted more cells."""

    cells: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class SettingStarted(Event):
    kv: str
    pending: int


@dataclass(frozen=True, slots=True)
class CanaryDone(Event):
    kv: str
    state: str
    why: str


@dataclass(frozen=True, slots=True)
class TokensDone(Event):
    """Prompt tokens processed or reused since the last event of this kind."""

    count: int


@dataclass(frozen=True, slots=True)
class RowDone(Event):
    row: Row


@dataclass(frozen=True, slots=True)
class Note(Event):
    """A sentence for people; ``warning`` ones matter for reading the results."""

    text: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class RunFinished(Event):
    folder: str
    status: str


class Sink(Protocol):
    def handle(self, event: Event) -> None: ...


class Events:
    """Hands each event to all sinks; what a sink raises is logged once per sink and goes no further."""

    def __init__(self, sinks: Sequence[Sink] = ()) -> None:
        self._sinks = list(sinks)

    def emit(self, event: Event) -> None:
        for sink in list(self._sinks):
            try:
                sink.handle(event)
            except Exception:  # a broken display must not cost a measurement
                logging.getLogger("niah").exception("a sink failed and is switched off: %r", sink)
                self._sinks.remove(sink)
