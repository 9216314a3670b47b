"""``--batch``: pending cells are submitted together, waited for, and collected by the next run if this one ends before.

Whatever is submitted is in the journal first. A cell in a batch that is still at the service is not asked again.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from niah.engines.base import Batches, BatchState
from niah.errors import BackendUnavailable, CellError, ConfigError, boundary
from niah.kv.config import KVConfig
from niah.runner import events as ev
from niah.runner.cells import PendingCells, PlannedCell
from niah.runner.prompt_builder import Group
from niah.runner.state import RunState, admit, count_without_row, next_attempt, record, record_not_built
from niah.store.batches import Batch, BatchJournal, BatchRequest
from niah.types import Failure, Prompt, Reply

# seconds between two looks at whether a wait should end
_CHECK_S = 0.2
# how often cells are submitted when their batch is not found again
_ATTEMPTS = 2


def waiting_batches(state: RunState, kv: KVConfig) -> list[Batch]:
    """Batches of an earlier run that are still at the service.

    Raises:
        ConfigError: there are some, and this run was not told to collect them: it would ask their cells again.
        StoreError: the journal cannot be read.
    """
    waiting = BatchJournal(state.folder).pending(kv.name)
    if waiting and not state.plan.config.batch:
        requests = sum(len(batch.requests) for batch in waiting)
        names = ", ".join(batch.batch_id or "one of unknown name" for batch in waiting)
        raise ConfigError(
            f"{requests:,} requests of this run are at the service already (batch {names}): collect them by --batch, "
            "or start over by --fresh, which pays for them twice."
        )
    return waiting


async def ask_in_batches(state: RunState, batches: Batches, kv: KVConfig, pending: Sequence[PendingCells]) -> None:
    """Collect what an earlier run submitted, submit the rest, and wait for it.

    Raises:
        BackendUnavailable: the service refuses a batch or cannot be asked; rows that exist are kept, and what is at
            the service is collected by the next run.
        StoreError: journal or rows cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="niah-batch-") as folder:
        await BatchSubmitter(state, batches, kv, Path(folder)).run(pending)


@dataclass
class _OutgoingBatch:
    """A batch that is being put together; its lines are in a file, so that no tokens are held in memory."""

    label: str
    path: Path
    requests: list[BatchRequest] = field(default_factory=list)
    size_bytes: int = 0
    tokens: int = 0

    @property
    def next_id(self) -> str:
        return f"{self.label}-{len(self.requests)}"

    def has_room(self, line: bytes, limits: Batches) -> bool:
        fits = self.size_bytes + len(line) < limits.most_bytes
        return not self.requests or (fits and len(self.requests) < limits.most_requests)

    def add(self, line: bytes, request: BatchRequest) -> None:
        with self.path.open("ab") as file:
            file.write(line + b"\n")
        self.requests.append(request)
        self.size_bytes += len(line) + 1
        self.tokens += request.prompt_tokens


@dataclass
class _SubmittedBatch:
    """A batch whose results are waited for.

    Attributes:
        is_confirmed: the service gave its id when it was submitted, or its label identifies it.
        tried: ids that were found for it and belong to other batches.
    """

    batch: Batch
    is_confirmed: bool = True
    tried: frozenset[str] = frozenset()


class BatchSubmitter:
    """Submits and collects the batches of one KV setting.

    Args:
        folder: where files wait until they are uploaded.
    """

    def __init__(self, state: RunState, batches: Batches, kv: KVConfig, folder: Path) -> None:
        self._state, self._batches, self._kv, self._folder = state, batches, kv, folder
        self._journal = BatchJournal(state.folder)
        # all that may be asked, not only what this round is granted: an earlier run may have come further
        groups = state.plan.groups
        self._cells = {cell.cell_id: cell for group in groups for cell in state.plan.cells(kv, group)}
        self._done: set[str] = set()
        self._open: list[_SubmittedBatch] = []
        self._in_flight: Counter[Group] = Counter()
        self._outgoing = self._new_outgoing()

    async def run(self, pending: Sequence[PendingCells]) -> None:
        """As ``ask_in_batches``."""
        await self._find_earlier()
        # what an earlier run submitted is paid for, and counts before more is asked
        await self._collect()
        for _ in range(_ATTEMPTS):
            left = self._unanswered(pending)
            if self._open or not left or self._should_stop() or not self._may_submit():
                return
            await self._submit_pending(left)
            await self._collect()
        if self._unanswered(pending) and not self._state.stop.due():
            raise BackendUnavailable(
                "batches were submitted and are not found at the service; the same command asks the missing cells."
            )

    def _may_submit(self) -> bool:
        """Whether the canary permits it: what a broken setting answers is not worth paying for."""
        if self._kv.name not in self._state.manifest.broken():
            return True
        text = f"{self._kv.name}: its canary failed, so nothing is submitted; the same command asks it again"
        self._note(text, warning=True)
        return False

    async def _find_earlier(self) -> None:
        for batch in self._journal.pending(self._kv.name):
            for request in batch.requests:
                if request.cell in self._cells:
                    self._in_flight[self._cells[request.cell].group] += 1
            if batch.batch_id is not None:
                self._open.append(_SubmittedBatch(batch))
            elif not await self._find_submitted(batch):
                continue
            self._note(f"batch {batch.batch_id}: {len(batch.requests):,} requests of an earlier run are waited for")

    async def _find_submitted(self, batch: Batch, tried: frozenset[str] = frozenset()) -> bool:
        """Whether a batch that may not have arrived is found; a service may show it late."""
        while True:
            known = self._journal.known_ids() | {str(other.batch.batch_id) for other in self._open} | tried
            found = await self._batches.find(batch.label, len(batch.requests), batch.submitted_at)
            candidates = [name for name in found if name not in known]
            if candidates:
                break
            if time.time() > batch.submitted_at + self._batches.settle_s:
                self._mark_lost(batch)
                return False
            if await self._wait():
                self._note("it is not known yet whether a batch arrived; the same command looks again", warning=True)
                return False
        if self._batches.is_marked:
            self._journal.arrived(batch, candidates[0])
        batch.batch_id = candidates[0]
        self._open.append(_SubmittedBatch(batch, self._batches.is_marked, tried))
        return True

    def _mark_lost(self, batch: Batch) -> None:
        """It never arrived: its cells are asked again."""
        self._journal.over(batch, "lost")
        self._release(batch)

    def _release(self, batch: Batch) -> None:
        for request in batch.requests:
            if request.cell in self._cells:
                self._finish_one(self._cells[request.cell].group)

    def _unanswered(self, pending: Sequence[PendingCells]) -> list[PendingCells]:
        """Without cells that have had an answer, or failed, in this run or from an earlier run's batch."""
        left = (
            PendingCells(one.group, tuple(cell for cell in one.cells if cell.cell_id not in self._done))
            for one in pending
        )
        return [one for one in left if one.cells]

    # submitting

    async def _submit_pending(self, pending: Sequence[PendingCells]) -> None:
        for one in pending:
            if self._should_stop():
                break
            if not admit(self._state, admitted=self._state.spending.admit(one.group, len(one.cells))):
                break
            prompts = await self._build(one)
            # counted from the start, so that the group is not settled when a part of it has been collected
            self._in_flight[one.group] += len(prompts)
            if not prompts:
                self._state.spending.settle(one.group)
            for cell, prompt in prompts:
                await self._add(cell, prompt)
        if self._state.stop.reason != "interrupted" and self._has_room(0):
            await self._submit()

    async def _build(self, pending: PendingCells) -> list[tuple[PlannedCell, Prompt]]:
        try:
            prompts = await asyncio.to_thread(self._state.plan.builder.prompts, pending.group)
        except (CellError, ConfigError) as err:
            record_not_built(self._state, pending, err)
            self._done |= {cell.cell_id for cell in pending.cells}
            return []
        return [(cell, prompts[cell.position]) for cell in pending.cells]

    async def _add(self, cell: PlannedCell, prompt: Prompt) -> None:
        if not self._has_room(prompt.token_count):
            await self._submit()
            await self._collect()
        line = self._line(cell, prompt)
        if line is not None and not self._outgoing.has_room(line, self._batches):
            await self._submit()
            line = self._line(cell, prompt)
        if line is not None:
            self._outgoing.add(line, BatchRequest.of(cell.cell_id, next_attempt(self._state, cell), prompt))

    def _has_room(self, tokens: int) -> bool:
        """Whether so many more prompt tokens may wait at the service."""
        limit = self._batches.most_tokens
        submitted = (request for one in self._open for request in one.batch.requests)
        waiting = self._outgoing.tokens + sum(request.prompt_tokens for request in submitted)
        return limit is None or waiting + tokens <= limit

    def _line(self, cell: PlannedCell, prompt: Prompt) -> bytes | None:
        try:
            with boundary("engine", "the batch"):
                return self._batches.line(self._outgoing.next_id, prompt)
        except CellError as err:
            record(self._state, cell, prompt, Failure(err.kind, str(err), err.retryable))
            self._done.add(cell.cell_id)
            self._finish_one(cell.group)
            return None

    def _new_outgoing(self) -> _OutgoingBatch:
        label = secrets.token_hex(8)
        return _OutgoingBatch(label, self._folder / f"{label}.jsonl")

    async def _submit(self) -> None:
        chunk, self._outgoing = self._outgoing, self._new_outgoing()
        if not chunk.requests:
            return
        batch = Batch(chunk.label, self._kv.name, time.time(), tuple(chunk.requests))
        self._journal.announce(batch)
        try:
            batch.batch_id = await self._batches.submit(chunk.label, chunk.path)
        except BackendUnavailable:
            self._journal.over(batch, "refused")
            raise
        except CellError as err:
            self._note(f"it is not known whether a batch arrived ({err}); it is looked for", warning=True)
            if not await self._find_submitted(batch):
                return
        else:
            self._journal.arrived(batch, batch.batch_id)
            self._open.append(_SubmittedBatch(batch))
        chunk.path.unlink()
        requests = f"{len(chunk.requests):,} requests of {chunk.tokens:,} prompt tokens"
        self._note(f"batch {batch.batch_id}: {requests} submitted")

    # collecting

    async def _collect(self) -> None:
        """Wait until no batch is open, or the run should stop."""
        last: dict[str, BatchState] = {}
        while self._open:
            for one in tuple(self._open):
                name = str(one.batch.batch_id)
                found = await self._batches.state(name)
                if found.is_over:
                    await self._collect_batch(one, found)
                elif found != last.get(name):
                    last[name] = found
                    self._note(f"batch {name}: {found.word}, {found.done:,} of {found.requests:,} requests")
            if self._open and await self._wait():
                for one in self._open:
                    requests = f"its {len(one.batch.requests):,} requests go on"
                    self._note(
                        f"batch {one.batch.batch_id}: {requests}; the same command, without --fresh, collects them"
                    )
                return

    async def _wait(self) -> bool:
        """Until the next check; True when the run should stop instead."""
        until = time.monotonic() + self._batches.poll_s
        while (left := until - time.monotonic()) > 0:
            if self._should_stop():
                return True
            await asyncio.sleep(min(_CHECK_S, left))
        return self._should_stop()

    def _should_stop(self) -> bool:
        """Ctrl-C and the clock end a wait; a limit on money does not, since what is open is paid for."""
        stop = self._state.stop
        late = stop.deadline is not None and time.monotonic() >= stop.deadline
        return late or stop.reason == "interrupted" or (stop.due() and not self._state.spending.why)

    async def _collect_batch(self, one: _SubmittedBatch, found: BatchState) -> None:
        """The results of a batch as rows; if it turns out to be another's, the next candidate is tried."""
        batch = one.batch
        if found.fault and one.is_confirmed:
            self._open.remove(one)
            self._journal.over(batch, "refused")
            self._release(batch)
            raise BackendUnavailable(f"batch {batch.batch_id} was rejected: {found.fault}")
        results: dict[str, Callable[[Prompt], Reply]] = {}
        for custom_id, reply_to in [] if found.fault else await self._batches.replies(str(batch.batch_id)):
            if (known := batch.request_of(custom_id)) is not None:
                results.setdefault(known.cell, reply_to)
        if not results and not one.is_confirmed:
            self._note(f"batch {batch.batch_id} is not the one that was looked for", warning=True)
            self._open.remove(one)
            await self._find_submitted(batch, one.tried | {str(batch.batch_id)})
            return
        self._open.remove(one)
        missing = Failure("no_reply", f"the results of batch {batch.batch_id} have no line for it", retryable=True)
        faults: list[BackendUnavailable] = []
        for request in batch.requests:
            try:
                self._record(request, results.get(request.cell, lambda _: missing))
            except BackendUnavailable as err:
                faults.append(err)
        self._done |= {request.cell for request in batch.requests}
        self._journal.over(batch, "collected")
        if faults:
            raise faults[0]

    def _record(self, request: BatchRequest, reply_to: Callable[[Prompt], Reply]) -> None:
        cell = self._cells.get(request.cell)
        if cell is None:
            text = f"the cell {request.cell} of a batch is none of this run's; its answer is left out"
            self._note(text, warning=True)
            return
        row = self._state.rows.get(request.cell)
        try:
            if row is None or row.attempt < request.attempt:
                prompt = request.prompt(cell.case)
                record(self._state, cell, prompt, reply_to(prompt))
            elif row.answer_cached:
                # the answer came from elsewhere meanwhile, and this one is paid for all the same
                count_without_row(self._state, [reply_to(request.prompt(cell.case))])
        finally:
            self._finish_one(cell.group)

    def _finish_one(self, group: Group) -> None:
        """One request of a group has its result; the group is settled with its last one."""
        self._in_flight[group] -= 1
        if not self._in_flight[group]:
            self._state.spending.settle(group)
            self._state.events.emit(ev.TokensDone(group.length))

    def _note(self, text: str, *, warning: bool = False) -> None:
        self._state.events.emit(ev.Note(text, warning=warning))
