"""``--batch``: owed cells are handed in together, waited for, and found again by the next run if this one ends before.

Whatever is handed in stands in the journal first. A cell in a batch that is still at the service is not asked again.
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

from niah.backends.base import Batches, BatchState
from niah.errors import BackendUnavailable, CellError, ConfigError, boundary
from niah.kv.base import KVConfig
from niah.runner import events as ev
from niah.runner.state import Owed, State, admit, is_owed, record, record_unbuilt
from niah.runner.workshop import Group
from niah.store.batches import Batch, BatchJournal, Sent
from niah.types import Case, Failure, Prompt, Reply

# seconds after which a wait notices that it should end
_LOOK_S = 0.2


async def ask_in_batches(state: State, batches: Batches, kv: KVConfig, owed: Sequence[Owed]) -> None:
    """Collect what an earlier run handed in, hand in the rest, and wait for it.

    Raises:
        BackendUnavailable: the service refuses a batch or cannot be asked; rows that exist are kept, and what is at
            the service is collected by the next run.
        StoreError: journal or rows cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="niah-batch-") as folder:
        await _Asking(state, batches, kv, Path(folder)).run(owed)


@dataclass
class _Chunk:
    """A batch that is being put together: its lines are in a file, the tokens of its prompts nowhere."""

    label: str
    path: Path
    requests: list[Sent] = field(default_factory=list)
    size_bytes: int = 0
    tokens: int = 0

    @property
    def next_id(self) -> str:
        return f"{self.label}-{len(self.requests)}"

    def has_room(self, line: bytes, limits: Batches) -> bool:
        fits = self.size_bytes + len(line) < limits.most_bytes
        return not self.requests or (fits and len(self.requests) < limits.most_requests)

    def add(self, line: bytes, sent: Sent) -> None:
        with self.path.open("ab") as file:
            file.write(line + b"\n")
        self.requests.append(sent)
        self.size_bytes += len(line) + 1
        self.tokens += sent.prompt_tokens


class _Asking:
    def __init__(self, state: State, batches: Batches, kv: KVConfig, folder: Path) -> None:
        self._state, self._batches, self._kv, self._folder = state, batches, kv, folder
        self._journal = BatchJournal(state.folder)
        self._cells: dict[str, tuple[Group, Case]] = {}
        self._done: set[str] = set()
        self._open: list[Batch] = []
        self._flying: Counter[Group] = Counter()
        self._chunk = self._new_chunk()

    async def run(self, owed: Sequence[Owed]) -> None:
        plan = self._state.plan
        self._cells = {
            plan.ids(self._kv, group, case).cell: (group, case)
            for group in plan.groups_of(self._kv.name)
            for case in plan.workshop.cases(group)
        }
        await self._find_earlier()
        # what an earlier run handed in is paid for, and counts before more is asked
        await self._collect()
        if not self._open:
            await self._hand_in([left for one in owed if (left := self._left(one)).wanted])
            await self._collect()

    async def _find_earlier(self) -> None:
        for batch in self._journal.pending(self._kv.name):
            if batch.batch_id is None:
                found = await self._batches.find(batch.label, len(batch.requests), batch.handed_in)
                if found is None:
                    self._journal.over(batch, "lost")
                    continue
                self._journal.arrived(batch, found)
            self._note(f"batch {batch.batch_id}: {len(batch.requests):,} requests of an earlier run are waited for")
            self._flying.update(self._cells[sent.cell][0] for sent in batch.requests if sent.cell in self._cells)
            self._open.append(batch)

    def _left(self, owed: Owed) -> Owed:
        """Without cells that have had an answer, or failed, in an earlier run's batch."""
        cells = {i: self._cell_of(owed.group, i) for i in owed.wanted}
        return Owed(owed.group, tuple(i for i, cell in cells.items() if cell not in self._done))

    def _cell_of(self, group: Group, position: int) -> str:
        plan = self._state.plan
        return plan.ids(self._kv, group, plan.workshop.cases(group)[position]).cell

    # handing in

    async def _hand_in(self, owed: Sequence[Owed]) -> None:
        for one in owed:
            if self._is_to_leave():
                return
            if not admit(self._state, self._state.spending.admit(one.group, len(one.wanted))):
                break
            for position, prompt in await self._built(one):
                await self._add(one.group, self._cell_of(one.group, position), prompt)
                if self._is_to_leave():
                    return
        await self._send()

    async def _built(self, owed: Owed) -> list[tuple[int, Prompt]]:
        try:
            prompts = await asyncio.to_thread(self._state.plan.workshop.prompts, owed.group)
        except (CellError, ConfigError) as err:
            kind = err.kind if isinstance(err, CellError) else "not_built"
            record_unbuilt(self._state, self._kv, owed, Failure(kind, str(err)))
            return []
        return [(i, prompts[i]) for i in owed.wanted]

    async def _add(self, group: Group, cell: str, prompt: Prompt) -> None:
        sent, limit = Sent.of(cell, prompt), self._batches.most_tokens
        waiting = self._chunk.tokens + sum(other.prompt_tokens for batch in self._open for other in batch.requests)
        if limit is not None and waiting + sent.prompt_tokens > limit:
            await self._send()
            await self._collect()
        line = self._line(group, prompt)
        if line is not None and not self._chunk.has_room(line, self._batches):
            await self._send()
            line = self._line(group, prompt)
        if line is not None:
            self._chunk.add(line, sent)
            self._flying[group] += 1

    def _line(self, group: Group, prompt: Prompt) -> bytes | None:
        try:
            with boundary("engine", "the batch"):
                return self._batches.line(self._chunk.next_id, prompt)
        except CellError as err:
            record(self._state, self._kv, group, prompt, Failure(err.kind, str(err), err.retryable))
            return None

    def _new_chunk(self) -> _Chunk:
        label = secrets.token_hex(8)
        return _Chunk(label, self._folder / f"{label}.jsonl")

    async def _send(self) -> None:
        chunk, self._chunk = self._chunk, self._new_chunk()
        if not chunk.requests:
            return
        batch = Batch(chunk.label, self._kv.name, time.time(), tuple(chunk.requests))
        self._journal.announce(batch)
        try:
            batch_id = await self._batches.submit(chunk.label, chunk.path, len(chunk.requests))
        except BackendUnavailable:
            self._journal.over(batch, "refused")
            raise
        except CellError as err:
            # it may have arrived: the next run looks for it before it asks these cells again
            raise BackendUnavailable(
                f"nobody knows whether a batch of {len(chunk.requests):,} requests arrived; the same command looks for "
                f"it: {err}"
            ) from err
        chunk.path.unlink()
        self._journal.arrived(batch, batch_id)
        self._open.append(batch)
        self._note(f"batch {batch_id}: {len(chunk.requests):,} requests of {chunk.tokens:,} prompt tokens handed in")

    # collecting

    async def _collect(self) -> None:
        """Wait until nothing is open, or the run is to end."""
        last: dict[str, BatchState] = {}
        while self._open:
            for batch in tuple(self._open):
                found = await self._batches.state(str(batch.batch_id))
                if found.is_over:
                    await self._take(batch, found)
                elif found != last.get(batch.label):
                    last[batch.label] = found
                    self._note(f"batch {batch.batch_id}: {found.word}, {found.done:,} of {found.requests:,} requests")
            if self._open and await self._wait():
                for batch in self._open:
                    requests = f"{len(batch.requests):,} requests"
                    self._note(f"batch {batch.batch_id}: its {requests} go on; the same command collects them")
                return

    async def _wait(self) -> bool:
        """Until the next look; True when the run is to end instead."""
        until = time.monotonic() + self._batches.poll_s
        while (left := until - time.monotonic()) > 0:
            if self._is_to_leave():
                return True
            await asyncio.sleep(min(_LOOK_S, left))
        return self._is_to_leave()

    def _is_to_leave(self) -> bool:
        """Ctrl-C and the clock end a wait; a limit on money does not, since what is open is paid for."""
        stop = self._state.stop
        late = stop.deadline is not None and time.monotonic() >= stop.deadline
        return late or stop.reason == "interrupted" or (stop.due() and not self._state.spending.why)

    async def _take(self, batch: Batch, found: BatchState) -> None:
        """The results of a batch as rows."""
        self._open.remove(batch)
        if found.fault:
            self._journal.over(batch, "refused")
            raise BackendUnavailable(f"batch {batch.batch_id} came to nothing: {found.fault}")
        replies = await self._batches.replies(str(batch.batch_id))
        faults: list[BackendUnavailable] = []
        results: dict[str, Callable[[Prompt], Reply]] = {}
        for custom_id, reply_to in replies:
            if (known := batch.request_of(custom_id)) is not None:
                results.setdefault(known.cell, reply_to)
        if replies and not results:
            self._journal.over(batch, "lost")
            self._note(f"batch {batch.batch_id} holds nothing of this run; its requests are owed again", warning=True)
            return
        missing = Failure("no_reply", f"the results of batch {batch.batch_id} have no line for it", retryable=True)
        for sent in batch.requests:
            try:
                self._record(sent, results.get(sent.cell, lambda _: missing))
            except BackendUnavailable as err:
                faults.append(err)
        self._done |= {sent.cell for sent in batch.requests}
        self._journal.over(batch, "collected")
        if faults:
            raise faults[0]

    def _record(self, sent: Sent, reply_to: Callable[[Prompt], Reply]) -> None:
        if sent.cell not in self._cells:
            return  # of an earlier plan of this run, which this one does not ask
        group, case = self._cells[sent.cell]
        row = self._state.rows.get(sent.cell)
        if row is None or is_owed(row):
            prompt = sent.prompt(case)
            record(self._state, self._kv, group, prompt, reply_to(prompt))
        self._flying[group] -= 1
        if not self._flying[group]:
            self._state.spending.settle(group)
            self._state.events.emit(ev.TokensDone(group.length))

    def _note(self, text: str, *, warning: bool = False) -> None:
        self._state.events.emit(ev.Note(text, warning))
