"""The state of a run under way (plan, folder, limits), and how a reply becomes a row on disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from niah.errors import CellError, ConfigError
from niah.runner import events as ev
from niah.runner.answer_cache import AnswerCache
from niah.runner.budget import Spending
from niah.runner.cells import PendingCells, PlannedCell
from niah.runner.manifest import Manifest
from niah.runner.plan import Plan
from niah.runner.rows import failed_row, make_row
from niah.store.folder import RunFolder
from niah.store.schema import Row
from niah.types import Answer, Failure, Prompt, Reply


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


@dataclass
class RunState:
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
    # by a prompt's hash: what writes its row, for sessions that give replies before their whole group is done
    writers: dict[str, Callable[[Prompt, Reply], None]] = field(default_factory=dict)
    # prompts are built in a thread, one context at a time: replies that come meanwhile are not kept waiting
    building: asyncio.Lock = field(default_factory=asyncio.Lock)
    fault: BaseException | None = None

    @property
    def is_over(self) -> bool:
        return self.fault is not None or self.stop.due()


def is_pending(row: Row | None) -> bool:
    """Whether a cell must still be asked; a refused or truncated answer would only come back the same."""
    return row is None or row.outcome == "failed"


def admit(state: RunState, *, admitted: bool) -> bool:
    """Stop the run when a limit refuses what comes next."""
    if not admitted and not state.stop.reason:
        state.stop.reason, state.stop.why = "budget", state.spending.why
    return admitted


def count_without_row(state: RunState, replies: Sequence[Reply]) -> None:
    """Count what has no row, and save the count at once."""
    state.spending.beside(replies)
    state.manifest.spent(state.spending)


def record(state: RunState, cell: PlannedCell, prompt: Prompt, reply: Reply) -> None:
    """Write the row of a reply, and keep its answer for later runs."""
    _write(state, make_row(state.plan, cell, prompt, reply, next_attempt(state, cell)))
    state.answers.put(cell.kv, prompt, reply)


def record_cached(state: RunState, cell: PlannedCell, prompt: Prompt, answer: Answer) -> None:
    """Write the row of an answer that an earlier run got."""
    _write(state, make_row(state.plan, cell, prompt, answer, next_attempt(state, cell), answer_cached=True))


def record_not_built(state: RunState, pending: PendingCells, error: CellError | ConfigError) -> None:
    """Rows of cells whose prompt could not be assembled: failed, so that the rest of the run goes on."""
    failure = Failure(error.kind if isinstance(error, CellError) else "not_built", str(error))
    for cell in pending.cells:
        _write(state, failed_row(state.plan, cell, failure, next_attempt(state, cell)))


def next_attempt(state: RunState, cell: PlannedCell) -> int:
    """Number of the next row of a cell, from 1."""
    before = state.rows.get(cell.cell_id)
    return before.attempt + 1 if before is not None else 1


def _write(state: RunState, row: Row) -> None:
    """The row is on disk, counted and shown when this returns."""
    state.folder.append(row)
    state.rows[row.cell_id] = row
    state.spending.row(row)
    state.events.emit(ev.RowDone(row))
