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

from niah.engines.base import Batches, BatchState
from niah.errors import BackendUnavailable, CellError, ConfigError, boundary
from niah.kv.config import KVConfig
from niah.runner import events as ev
from niah.runner.state import Owed, State, admit, count_beside, record, record_unbuilt
from niah.runner.workshop import Group
from niah.store.batches import Batch, BatchJournal, Sent
from niah.types import Case, Failure, Prompt, Reply

# seconds after which a wait notices that it should end
_LOOK_S = 0.2
# times that cells are handed in whose batch, though handed in, is not found again
_ROUNDS = 2


def waiting_batches(state: State, kv: KVConfig) -> list[Batch]:
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
            "or begin anew by --fresh, which pays for them twice."
        )
    return waiting


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


@dataclass
class _Open:
    """A batch that is waited for.

    Attributes:
        is_sure: its id is the one that its submission was answered with, or it bears our mark.
        tried: ids that were found for it and turned out to be those of others.
    """

    batch: Batch
    is_sure: bool = True
    tried: frozenset[str] = frozenset()


class _Asking:
    def __init__(self, state: State, batches: Batches, kv: KVConfig, folder: Path) -> None:
        self._state, self._batches, self._kv, self._folder = state, batches, kv, folder
        self._journal = BatchJournal(state.folder)
        self._cells: dict[str, tuple[Group, Case]] = {}
        self._done: set[str] = set()
        self._open: list[_Open] = []
        self._flying: Counter[Group] = Counter()
        self._chunk = self._new_chunk()

    async def run(self, owed: Sequence[Owed]) -> None:
        plan = self._state.plan
        # all that may be asked, not only what this round is granted: an earlier run may have come further
        self._cells = {
            plan.ids(self._kv, group, case).cell: (group, case)
            for group in plan.groups
            for case in plan.workshop.cases(group)
        }
        await self._find_earlier()
        # what an earlier run handed in is paid for, and counts before more is asked
        await self._collect()
        for _ in range(_ROUNDS):
            left = [rest for one in owed if (rest := self._left(one)).wanted]
            if self._open or not left or self._is_to_leave() or not self._may_hand_in():
                return
            await self._hand_in(left)
            await self._collect()
        if any(self._left(one).wanted for one in owed) and not self._state.stop.due():
            raise BackendUnavailable(
                "batches were handed in and are not found again; the same command asks what is owed."
            )

    def _may_hand_in(self) -> bool:
        """A setting whose canary failed would be paid for to no end."""
        if self._kv.name not in self._state.manifest.broken():
            return True
        self._note(f"{self._kv.name}: its canary failed, so nothing is handed in; the same command asks it again", True)
        return False

    async def _find_earlier(self) -> None:
        for batch in self._journal.pending(self._kv.name):
            for sent in batch.requests:
                if sent.cell in self._cells:
                    self._flying[self._cells[sent.cell][0]] += 1
            if batch.batch_id is not None:
                self._open.append(_Open(batch))
            elif not await self._look_for(batch):
                continue
            self._note(f"batch {batch.batch_id}: {len(batch.requests):,} requests of an earlier run are waited for")

    async def _look_for(self, batch: Batch, tried: frozenset[str] = frozenset()) -> bool:
        """Whether a batch of which nobody knows whether it arrived is found; a service may show it late."""
        while True:
            known = self._journal.known_ids() | {str(other.batch.batch_id) for other in self._open} | tried
            found = await self._batches.find(batch.label, len(batch.requests), batch.handed_in)
            candidates = [name for name in found if name not in known]
            if candidates:
                break
            if time.time() > batch.handed_in + self._batches.settle_s:
                self._lose(batch)
                return False
            if await self._wait():
                self._note("it is not known yet whether a batch arrived; the same command looks again", warning=True)
                return False
        if self._batches.is_marked:
            self._journal.arrived(batch, candidates[0])
        batch.batch_id = candidates[0]
        self._open.append(_Open(batch, self._batches.is_marked, tried))
        return True

    def _lose(self, batch: Batch) -> None:
        """It never arrived: its cells are owed."""
        self._journal.over(batch, "lost")
        self._release(batch)

    def _release(self, batch: Batch) -> None:
        for sent in batch.requests:
            if sent.cell in self._cells:
                self._land(self._cells[sent.cell][0])

    def _left(self, owed: Owed) -> Owed:
        """Without cells that have had an answer, or failed, in this run or from an earlier run's batch."""
        cells = {i: self._cell_of(owed.group, i) for i in owed.wanted}
        return Owed(owed.group, tuple(i for i, cell in cells.items() if cell not in self._done))

    def _cell_of(self, group: Group, position: int) -> str:
        plan = self._state.plan
        return plan.ids(self._kv, group, plan.workshop.cases(group)[position]).cell

    # handing in

    async def _hand_in(self, owed: Sequence[Owed]) -> None:
        for one in owed:
            if self._is_to_leave():
                break
            if not admit(self._state, self._state.spending.admit(one.group, len(one.wanted))):
                break
            prompts = await self._built(one)
            # from the start, so that the group is not let go when a part of it has been collected
            self._flying[one.group] += len(prompts)
            if not prompts:
                self._state.spending.settle(one.group)
            for position, prompt in prompts:
                await self._add(one.group, self._cell_of(one.group, position), prompt)
        if self._state.stop.reason != "interrupted" and self._has_room(0):
            await self._send()

    async def _built(self, owed: Owed) -> list[tuple[int, Prompt]]:
        try:
            prompts = await asyncio.to_thread(self._state.plan.workshop.prompts, owed.group)
        except (CellError, ConfigError) as err:
            kind = err.kind if isinstance(err, CellError) else "not_built"
            record_unbuilt(self._state, self._kv, owed, Failure(kind, str(err)))
            self._done |= {self._cell_of(owed.group, i) for i in owed.wanted}
            return []
        return [(i, prompts[i]) for i in owed.wanted]

    async def _add(self, group: Group, cell: str, prompt: Prompt) -> None:
        if not self._has_room(prompt.token_count):
            await self._send()
            await self._collect()
        line = self._line(group, cell, prompt)
        if line is not None and not self._chunk.has_room(line, self._batches):
            await self._send()
            line = self._line(group, cell, prompt)
        if line is not None:
            before = self._state.rows.get(cell)
            self._chunk.add(line, Sent.of(cell, before.attempt + 1 if before is not None else 1, prompt))

    def _has_room(self, tokens: int) -> bool:
        """Whether so many more prompt tokens may wait at the service."""
        limit = self._batches.most_tokens
        waiting = self._chunk.tokens + sum(sent.prompt_tokens for one in self._open for sent in one.batch.requests)
        return limit is None or waiting + tokens <= limit

    def _line(self, group: Group, cell: str, prompt: Prompt) -> bytes | None:
        try:
            with boundary("engine", "the batch"):
                return self._batches.line(self._chunk.next_id, prompt)
        except CellError as err:
            record(self._state, self._kv, group, prompt, Failure(err.kind, str(err), err.retryable))
            self._done.add(cell)
            self._land(group)
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
            batch.batch_id = await self._batches.submit(chunk.label, chunk.path)
        except BackendUnavailable:
            self._journal.over(batch, "refused")
            raise
        except CellError as err:
            self._note(f"it is not known whether a batch arrived ({err}); it is looked for", warning=True)
            if not await self._look_for(batch):
                return
        else:
            self._journal.arrived(batch, batch.batch_id)
            self._open.append(_Open(batch))
        chunk.path.unlink()
        requests = f"{len(chunk.requests):,} requests of {chunk.tokens:,} prompt tokens"
        self._note(f"batch {batch.batch_id}: {requests} handed in")

    # collecting

    async def _collect(self) -> None:
        """Wait until nothing is open, or the run is to end."""
        last: dict[str, BatchState] = {}
        while self._open:
            for one in tuple(self._open):
                name = str(one.batch.batch_id)
                found = await self._batches.state(name)
                if found.is_over:
                    await self._take(one, found)
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

    async def _take(self, one: _Open, found: BatchState) -> None:
        """The results of a batch as rows; one that is not ours after all gives way to the next that may be."""
        batch = one.batch
        if found.fault and one.is_sure:
            self._open.remove(one)
            self._journal.over(batch, "refused")
            self._release(batch)
            raise BackendUnavailable(f"batch {batch.batch_id} came to nothing: {found.fault}")
        results: dict[str, Callable[[Prompt], Reply]] = {}
        for custom_id, reply_to in [] if found.fault else await self._batches.replies(str(batch.batch_id)):
            if (known := batch.request_of(custom_id)) is not None:
                results.setdefault(known.cell, reply_to)
        if not results and not one.is_sure:
            self._note(f"batch {batch.batch_id} is not the one that was looked for", warning=True)
            self._open.remove(one)
            await self._look_for(batch, one.tried | {str(batch.batch_id)})
            return
        self._open.remove(one)
        missing = Failure("no_reply", f"the results of batch {batch.batch_id} have no line for it", retryable=True)
        faults: list[BackendUnavailable] = []
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
            self._note(f"the cell {sent.cell} of a batch is none of this run's; its answer is left out", warning=True)
            return
        group, case = self._cells[sent.cell]
        row = self._state.rows.get(sent.cell)
        try:
            if row is None or row.attempt < sent.attempt:
                prompt = sent.prompt(case)
                record(self._state, self._kv, group, prompt, reply_to(prompt))
            elif row.answer_cached:
                # the answer came from elsewhere meanwhile, and this one is paid for all the same
                count_beside(self._state, [reply_to(sent.prompt(case))])
        finally:
            self._land(group)

    def _land(self, group: Group) -> None:
        """One request of a group is through; the group is let go with its last one."""
        self._flying[group] -= 1
        if not self._flying[group]:
            self._state.spending.settle(group)
            self._state.events.emit(ev.TokensDone(group.length))

    def _note(self, text: str, warning: bool = False) -> None:
        self._state.events.emit(ev.Note(text, warning))
