"""The loop of a run: for each KV setting a canary, then every pending group; each row is written at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import TypeAlias

from niah.engines.base import BatchSession, Engine, Session, SessionRequest
from niah.errors import CellError, ConfigError, NiahError, boundary
from niah.grid import off_words
from niah.kv.config import KVConfig
from niah.runner import events as ev
from niah.runner.adaptive import Rounds
from niah.runner.answer_cache import opened_cache
from niah.runner.batches import ask_in_batches, waiting_batches
from niah.runner.budget import Spending
from niah.runner.canary import CanaryResult, canary_prompts, judge_replies
from niah.runner.cells import PendingCells
from niah.runner.manifest import Manifest
from niah.runner.plan import Plan
from niah.runner.state import (
    RunState,
    Stop,
    admit,
    count_without_row,
    is_pending,
    record,
    record_cached,
    record_not_built,
)
from niah.runner.verified import Verified
from niah.store.folder import RunFolder
from niah.store.metrics import append_sample
from niah.store.read import newest, read_rows
from niah.types import Failure, Prompt, Reply

VERIFY_GROUPS = 2

# by the name of a KV setting
_Pending: TypeAlias = dict[str, list[PendingCells]]


async def run_plan(
    plan: Plan, folder: RunFolder, manifest: Manifest, events: ev.Events, stop: Stop, rounds: Rounds | None = None
) -> str:
    """Run the pending cells; returns ``finished``, ``interrupted`` or ``budget``.

    Args:
        rounds: grants more trials to what is undecided, after each time that all pending cells were asked.

    Raises:
        BackendUnavailable: the engine cannot be opened; rows that exist are kept.
        StoreError: a row cannot be written.
    """
    read = read_rows(folder)
    if read.bad_lines:
        lines = ", ".join(str(n) for n in read.bad_lines[:5])
        events.emit(
            ev.Note(f"rows.jsonl: line {lines} cannot be read and is left out; its cells are asked again", warning=True)
        )
    spending = Spending.of(plan, read.rows, *manifest.spent_beside())
    with opened_cache(plan) as answers:
        state = RunState(plan, folder, manifest, events, stop, newest(read.rows), spending, answers)
        return await _run(state, rounds)


async def _run(state: RunState, rounds: Rounds | None) -> str:
    plan, manifest, stop = state.plan, state.manifest, state.stop
    waiting = {kv.name for kv in plan.kvs if waiting_batches(state, kv)}
    pending = _all_pending(state)
    _announce(state, pending)
    if plan.depths_off:
        state.events.emit(ev.Note(f"depths: {off_words(plan.depths_off, len(plan.lengths) * len(plan.depths))}"))
    manifest.start()
    pending = _without_cached(state, pending)
    # a setting whose canary is not settled is looked at again even when all its cells have answers
    todo = [kv for kv in plan.kvs if pending[kv.name] or kv.name in waiting or not manifest.settled_canary(kv.name)]
    status = "failed"
    try:
        async with AsyncExitStack() as stack:
            engine: Engine | None = None
            while True:
                if todo and engine is None:
                    engine = await stack.enter_async_context(plan.backend.open(plan.options, plan.info))
                for kv in todo:
                    if engine is not None and not stop.due():
                        await _run_setting(state, engine, kv, pending[kv.name])
                if stop.due() or rounds is None or not _granted(state, rounds):
                    break
                pending = _all_pending(state)
                _announce_more(state, pending)
                pending = _without_cached(state, pending)
                todo = [kv for kv in plan.kvs if pending[kv.name]]
        status = stop.reason or "finished"
    finally:
        if rounds is not None:
            manifest.adaptive(rounds.to_json(status))
        manifest.placed(state.rows.values())
        manifest.finish(status, state.spending, stop.why)
    if rounds is not None:
        state.events.emit(ev.Note(f"trials auto: stopped because {rounds.stopped(status)}"))
    state.events.emit(ev.RunFinished(str(state.folder.path), status))
    return status


def _granted(state: RunState, rounds: Rounds) -> bool:
    grown = rounds.grow(list(state.rows.values()), state.manifest.broken())
    state.events.emit(ev.Note(f"trials auto: {rounds.sentence}"))
    return grown


def _announce(state: RunState, pending: _Pending) -> None:
    kvs = {kv.name for kv in state.plan.kvs}
    failed = sum(row.kv in kvs and is_pending(row) for row in state.rows.values())
    cells, total = _cells(pending), state.plan.cell_count
    path = str(state.folder.path)
    state.events.emit(ev.RunStarted(path, total, total - cells, min(failed, cells), _tokens(pending)))


def _announce_more(state: RunState, pending: _Pending) -> None:
    state.events.emit(ev.CellsAdded(_cells(pending), _tokens(pending)))


def _cells(pending: _Pending) -> int:
    return sum(len(one.cells) for groups in pending.values() for one in groups)


def _tokens(pending: _Pending) -> int:
    return sum(one.group.length for groups in pending.values() for one in groups)


def _all_pending(state: RunState) -> _Pending:
    """By setting, the groups with cells that still need an answer. No prompt is assembled for that."""
    found: _Pending = {}
    for kv in state.plan.kvs:
        groups = ((group, state.plan.cells(kv, group)) for group in state.plan.groups_of(kv.name))
        left = (
            PendingCells(group, tuple(cell for cell in cells if is_pending(state.rows.get(cell.cell_id))))
            for group, cells in groups
        )
        found[kv.name] = [one for one in left if one.cells]
    return found


async def _run_setting(state: RunState, engine: Engine, kv: KVConfig, pending: Sequence[PendingCells]) -> None:
    plan, events = state.plan, state.events
    events.emit(ev.SettingStarted(kv.name, sum(len(one.cells) for one in pending)))
    async with engine.session(_request(state, kv, reuse=plan.config.reuse != "off")) as session:
        if not state.manifest.settled_canary(kv.name):
            await _canary(state, session, kv)
        if plan.config.batch and isinstance(session, BatchSession):
            await ask_in_batches(state, session.batches, kv, pending)
        else:
            queue = iter(pending)
            count = min(len(pending), max(1, session.max_in_flight))
            await asyncio.gather(*(_work(state, session, queue) for _ in range(count)))
        state.manifest.effective(kv.name, session.effective() | dict(plan.info.template.notes))
        if state.fault is not None:
            raise state.fault
    if plan.config.reuse == "verify" and not state.stop.due():
        await _verify(state, engine, kv)


def _request(state: RunState, kv: KVConfig, *, reuse: bool) -> SessionRequest:
    task = state.plan.builder.task
    return SessionRequest(
        kv=kv,
        max_length=max(state.plan.lengths),
        reuse=reuse,
        is_complete=task.is_complete,
        on_tokens=lambda n: state.events.emit(ev.TokensDone(n)),
        on_discarded=lambda answer: count_without_row(state, [answer]),
        on_reply=lambda prompt, reply: _write_early(state, prompt, reply),
        on_sample=lambda values: append_sample(state.folder, kv.name, values),
    )


async def _canary(state: RunState, session: Session, kv: KVConfig) -> None:
    reference = state.manifest.reference_canary() if kv.name != state.plan.reference else None
    try:
        prompts = canary_prompts(state.plan.config, state.plan.info)
        replies = state.answers.all(kv, prompts)
        if replies is None:
            if not admit(state, admitted=state.spending.admit_canary()):
                return
            with boundary("engine", "the canary"):
                replies = await session.answer(prompts)
            count_without_row(state, replies)
            for prompt, reply in zip(prompts, replies, strict=True):
                state.answers.put(kv, prompt, reply)
        result = judge_replies(prompts, replies, reference)
    except (CellError, ConfigError) as err:
        result = CanaryResult("broken" if isinstance(err, CellError) else "inconclusive", 0, 0, str(err))
    _settle_canary(state, kv, result)


def _settle_canary(state: RunState, kv: KVConfig, result: CanaryResult) -> None:
    state.manifest.canary(kv.name, result)
    state.events.emit(ev.CanaryDone(kv.name, result.state, result.why))


async def _work(state: RunState, session: Session, queue: Iterator[PendingCells]) -> None:
    """One worker: takes the next pending group until there is none or the run should stop.

    What ends the run (a key that is refused, a full disk) is kept for later, so that what other workers have in
    flight, and have paid for, still becomes rows.
    """
    try:
        for pending in queue:
            if state.is_over or not admit(state, admitted=state.spending.admit(pending.group, len(pending.cells))):
                return
            await _work_group(state, session, pending)
            state.spending.settle(pending.group)
    except NiahError as err:
        state.fault = state.fault or err


async def _work_group(state: RunState, session: Session, pending: PendingCells) -> None:
    try:
        async with state.building:
            prompts = await asyncio.to_thread(state.plan.builder.prompts, pending.group)
    except (CellError, ConfigError) as err:
        record_not_built(state, pending, err)
        return
    asked = [prompts[cell.position] for cell in pending.cells]
    left = {prompt.sha256: cell for prompt, cell in zip(asked, pending.cells, strict=True)}

    def write(prompt: Prompt, reply: Reply) -> None:
        if (cell := left.pop(prompt.sha256, None)) is not None:
            record(state, cell, prompt, reply)

    state.writers |= dict.fromkeys(left, write)
    try:
        for prompt, reply in zip(asked, await _ask(session, asked), strict=True):
            write(prompt, reply)
    finally:
        for prompt in asked:
            del state.writers[prompt.sha256]


def _write_early(state: RunState, prompt: Prompt, reply: Reply) -> None:
    """A reply that came before the others of its group: on disk at once. Canaries and verified samples have no row."""
    write = state.writers.get(prompt.sha256)
    if write is not None:
        write(prompt, reply)


def _without_cached(state: RunState, pending: _Pending) -> _Pending:
    """What must still be asked when the answers that are in the cache have become rows."""
    if state.answers.store is None:
        return pending
    left = {kv.name: _from_cache(state, kv, pending[kv.name]) for kv in state.plan.kvs}
    text = f"{_cells(pending) - _cells(left):,} answers from the cache {str(state.answers.store.path)!r}"
    state.events.emit(ev.Note(f"{text}, {_cells(left):,} prompts to ask"))
    return left


def _from_cache(state: RunState, kv: KVConfig, pending: Sequence[PendingCells]) -> list[PendingCells]:
    """Write the rows of cells whose answers are in the cache; returns what must still be asked."""
    left = []
    for one in pending:
        try:
            prompts = state.plan.builder.prompts(one.group)
        except (CellError, ConfigError):
            left.append(one)  # reported where it would be asked
            continue
        missing = []
        for cell in one.cells:
            answer = state.answers.get(kv, prompts[cell.position])
            if answer is None:
                missing.append(cell)
            else:
                record_cached(state, cell, prompts[cell.position], answer)
        if missing:
            left.append(PendingCells(one.group, tuple(missing)))
    if not state.manifest.settled_canary(kv.name):
        _canary_from_cache(state, kv)
    return left


def _canary_from_cache(state: RunState, kv: KVConfig) -> None:
    reference = state.plan.reference
    if reference not in (None, kv.name) and not state.manifest.settled_canary(str(reference)):
        return  # it could not be compared yet
    try:
        prompts = canary_prompts(state.plan.config, state.plan.info)
    except ConfigError:
        return  # reported where it would be asked
    replies = state.answers.all(kv, prompts)
    if replies is not None:
        other = state.manifest.reference_canary() if kv.name != reference else None
        _settle_canary(state, kv, judge_replies(prompts, replies, other))


async def _ask(session: Session, prompts: Sequence[Prompt]) -> list[Reply]:
    try:
        with boundary("engine", "the backend"):
            return await session.answer(prompts)
    except CellError as err:
        return [Failure(err.kind, str(err), err.retryable) for _ in prompts]


async def _verify(state: RunState, engine: Engine, kv: KVConfig) -> None:
    """Ask a sample again with every prompt processed from its first token, and compare the answers."""
    sample = [g for g in state.plan.groups if g.length == min(state.plan.lengths)][:VERIFY_GROUPS]
    tally = Verified()
    async with engine.session(_request(state, kv, reuse=False)) as session:
        for group in sample:
            prompts = state.plan.builder.prompts(group)
            replies = await _ask(session, prompts)
            count_without_row(state, replies)
            for cell, reply in zip(state.plan.cells(kv, group), replies, strict=True):
                tally.add(state.rows.get(cell.cell_id), reply)
    state.manifest.reuse_check(kv.name, tally.to_json())
    state.events.emit(ev.Note(tally.sentence(kv), warning=tally.is_warning))
