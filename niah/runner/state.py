"""What a run under way shares between its parts: plan, folder, limits, and how a reply becomes a row on disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from niah.kv.config import KVConfig
from niah.runner import events as ev
from niah.runner.answer_cache import AnswerCache
from niah.runner.budget import Spending
from niah.runner.manifest import Manifest
from niah.runner.plan import Ids, Plan
from niah.runner.rows import failed_row, make_row
from niah.runner.workshop import Group
from niah.store.folder import RunFolder
from niah.store.schema import Row
from niah.types import Failure, Prompt, Reply


@dataclass
class Stop:
    """Why a run should end early, set from outside (Ctrl-C), by the clock, or by a limit on money or tokens.

    Attributes:
        why: the limit that was reached, as the end of a sentence.
    """

    reason: str = ""
    deadline: float | None = None
    why: str = ""

    def due(self) -> bool:
        if not self.reason and self.deadline is not None and time.monotonic() >= self.deadline:
            self.reason, self.why = "budget", "the time limit; the same command goes on"
        return bool(self.reason)


@dataclass(frozen=True)
class Owed:
    """A group with the positions of its cells that still need an answer."""

    group: Group
    wanted: tuple[int, ...]


@dataclass
class State:
    """One run under way.

    Attributes:
        rows: the newest row of each cell, by its id.
        fault: what ends the run when all that is in flight has become rows.
    """

    plan: Plan
    folder: RunFolder
    manifest: Manifest
    events: ev.Events
    stop: Stop
    rows: dict[str, Row]
    spending: Spending
    answers: AnswerCache
    # by a prompt's hash: what keeps its reply, for sessions that give replies before their whole group is done
    keepers: dict[str, Callable[[Prompt, Reply], None]] = field(default_factory=dict)
    # prompts are built in a thread, one context at a time: replies that come meanwhile are not kept waiting
    building: asyncio.Lock = field(default_factory=asyncio.Lock)
    fault: BaseException | None = None

    @property
    def is_over(self) -> bool:
        return self.fault is not None or self.stop.due()


def is_owed(row: Row) -> bool:
    """A cell without a judgement is asked again; one cut off by its own budget would only be cut off again."""
    return row.outcome == "failed" or (row.outcome == "refused" and (row.error or "").startswith("limit"))


def admit(state: State, admitted: bool) -> bool:
    """Stop the run when a limit refuses what comes next."""
    if not admitted and not state.stop.reason:
        state.stop.reason, state.stop.why = "budget", state.spending.why
    return admitted


def count_beside(state: State, replies: Sequence[Reply]) -> None:
    """Count what has no row, and keep the count at once."""
    state.spending.beside(replies)
    state.manifest.spent(state.spending)


def record(state: State, kv: KVConfig, group: Group, prompt: Prompt, reply: Reply) -> None:
    """Write the row of a reply, and keep its answer for later runs."""
    ids = state.plan.ids(kv, group, prompt.case)
    keep(state, make_row(state.plan, kv, group, prompt, reply, ids, attempt_of(state, ids)))
    state.answers.put(kv, prompt, reply)


def record_unbuilt(state: State, kv: KVConfig, owed: Owed, failure: Failure) -> None:
    """Rows of cells whose prompt could not be assembled: failed, so that the rest of the run goes on."""
    cases = state.plan.workshop.cases(owed.group)
    for case in (cases[i] for i in owed.wanted):
        ids = state.plan.ids(kv, owed.group, case)
        keep(state, failed_row(state.plan, kv, owed.group, case, failure, ids, attempt_of(state, ids)))


def attempt_of(state: State, ids: Ids) -> int:
    """Number of the next row of a cell, from 1."""
    before = state.rows.get(ids.cell)
    return before.attempt + 1 if before is not None else 1


def keep(state: State, row: Row) -> None:
    """Write a row; it is on disk, counted and told when this returns."""
    state.folder.append(row)
    state.rows[row.cell_id] = row
    state.spending.row(row)
    state.events.emit(ev.RowDone(row))
