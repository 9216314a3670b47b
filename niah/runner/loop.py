"""Runs a plan: for each KV setting a canary, then every owed group; each row is on disk before the next is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

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
from niah.runner.manifest import Manifest
from niah.runner.plan import Plan
from niah.runner.rows import make_row
from niah.runner.state import (
    Owed,
    State,
    Stop,
    admit,
    attempt_of,
    count_beside,
    is_owed,
    keep,
    record,
    record_unbuilt,
)
from niah.runner.verified import Verified
from niah.runner.workshop import Group
from niah.store.folder import RunFolder
from niah.store.metrics import append_sample
from niah.store.read import newest, read_rows
from niah.types import Answer, Failure, Prompt, Reply

VERIFY_GROUPS = 2


async def run_plan(
    plan: Plan, folder: RunFolder, manifest: Manifest, events: ev.Events, stop: Stop, rounds: Rounds | None = None
) -> str:
    """Run what is owed; returns ``finished``, ``interrupted`` or ``budget``.

    Args:
        rounds: grants more trials to what is undecided, after each time that all owed cells were asked.

    Raises:
        BackendUnavailable: the engine cannot be opened; rows that exist are kept.
        StoreError: a row cannot be written.
    """
    read = read_rows(folder)
    if read.bad_lines:
        lines = ", ".join(str(n) for n in read.bad_lines[:5])
        events.emit(ev.Note(f"rows.jsonl: line {lines} cannot be read and is left out; its cells are owed again", True))
    spending = Spending.of(plan, read.rows, *manifest.spent_beside())
    with opened_cache(plan) as answers:
        state = State(plan, folder, manifest, events, stop, newest(read.rows), spending, answers)
        return await _run(state, rounds)


async def _run(state: State, rounds: Rounds | None) -> str:
    plan, manifest, stop = state.plan, state.manifest, state.stop
    waiting = {kv.name for kv in plan.kvs if waiting_batches(state, kv)}
    owed = {kv.name: _owed(state, kv) for kv in plan.kvs}
    _announce(state, owed)
    if plan.depths_off:
        state.events.emit(ev.Note(f"depths: {off_words(plan.depths_off, len(plan.lengths) * len(plan.depths))}"))
    manifest.start()
    owed = _without_cached(state, owed)
    # a setting whose canary is not settled is looked at again even when all its cells have answers
    todo = [kv for kv in plan.kvs if owed[kv.name] or kv.name in waiting or not manifest.settled_canary(kv.name)]
    status = "failed"
    try:
        async with AsyncExitStack() as stack:
            engine: Engine | None = None
            while True:
                if todo and engine is None:
                    engine = await stack.enter_async_context(plan.backend.open(plan.options, plan.info))
                for kv in todo:
                    if engine is not None and not stop.due():
                        await _run_setting(state, engine, kv, owed[kv.name])
                if stop.due() or rounds is None or not _granted(state, rounds):
                    break
                owed = {kv.name: _owed(state, kv) for kv in plan.kvs}
                _announce_more(state, owed)
                owed = _without_cached(state, owed)
                todo = [kv for kv in plan.kvs if owed[kv.name]]
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


def _granted(state: State, rounds: Rounds) -> bool:
    grown = rounds.grow(list(state.rows.values()), state.manifest.broken())
    state.events.emit(ev.Note(f"trials auto: {rounds.sentence}"))
    return grown


def _announce_more(state: State, owed: dict[str, list[Owed]]) -> None:
    groups = [o for found in owed.values() for o in found]
    state.events.emit(ev.CellsAdded(sum(len(o.wanted) for o in groups), sum(o.group.length for o in groups)))


def _announce(state: State, owed: dict[str, list[Owed]]) -> None:
    cells = _cells(owed)
    failed = sum(1 for kv in state.plan.kvs for row in state.rows.values() if row.kv == kv.name and is_owed(row))
    tokens = sum(o.group.length for groups in owed.values() for o in groups)
    done = state.plan.cell_count - cells
    state.events.emit(ev.RunStarted(str(state.folder.path), state.plan.cell_count, done, min(failed, cells), tokens))


def _cells(owed: dict[str, list[Owed]]) -> int:
    return sum(len(o.wanted) for groups in owed.values() for o in groups)


def _owed(state: State, kv: KVConfig) -> list[Owed]:
    """Groups with cells that have no usable row yet. Cases are made here, without assembling prompts."""
    out = []
    for group in state.plan.groups_of(kv.name):
        cases = state.plan.workshop.cases(group)
        wanted = []
        for i, case in enumerate(cases):
            row = state.rows.get(state.plan.ids(kv, group, case).cell)
            if row is None or is_owed(row):
                wanted.append(i)
        if wanted:
            out.append(Owed(group, tuple(wanted)))
    return out


async def _run_setting(state: State, engine: Engine, kv: KVConfig, owed: Sequence[Owed]) -> None:
    plan, events = state.plan, state.events
    events.emit(ev.SettingStarted(kv.name, sum(len(o.wanted) for o in owed)))
    async with engine.session(_request(state, kv, reuse=plan.config.reuse != "off")) as session:
        if not state.manifest.settled_canary(kv.name):
            await _canary(state, session, kv)
        if plan.config.batch and isinstance(session, BatchSession):
            await ask_in_batches(state, session.batches, kv, owed)
        else:
            queue = iter(owed)
            count = min(len(owed), max(1, session.max_in_flight))
            await asyncio.gather(*(_work(state, session, kv, queue) for _ in range(count)))
        state.manifest.effective(kv.name, session.effective() | dict(plan.info.template.notes))
        if state.fault is not None:
            raise state.fault
    if plan.config.reuse == "verify" and not state.stop.due():
        await _verify(state, engine, kv)


def _request(state: State, kv: KVConfig, *, reuse: bool) -> SessionRequest:
    task = state.plan.workshop.task
    return SessionRequest(
        kv=kv,
        max_length=max(state.plan.lengths),
        reuse=reuse,
        is_complete=task.is_complete,
        on_tokens=lambda n: state.events.emit(ev.TokensDone(n)),
        on_discarded=lambda answer: count_beside(state, [answer]),
        on_reply=lambda prompt, reply: _early(state, prompt, reply),
        on_sample=lambda values: append_sample(state.folder, kv.name, values),
    )


async def _canary(state: State, session: Session, kv: KVConfig) -> None:
    reference = state.manifest.reference_canary() if kv.name != state.plan.reference else None
    try:
        prompts = canary_prompts(state.plan.config, state.plan.info)
        replies = state.answers.all(kv, prompts)
        if replies is None:
            if not admit(state, state.spending.admit_canary()):
                return
            with boundary("engine", "the canary"):
                replies = await session.answer(prompts)
            count_beside(state, replies)
            for prompt, reply in zip(prompts, replies, strict=True):
                state.answers.put(kv, prompt, reply)
        result = judge_replies(prompts, replies, reference)
    except (CellError, ConfigError) as err:
        state_word = "broken" if isinstance(err, CellError) else "inconclusive"
        result = CanaryResult(state_word, 0, 0, str(err))
    state.manifest.canary(kv.name, result)
    state.events.emit(ev.CanaryDone(kv.name, result.state, result.why))


async def _work(state: State, session: Session, kv: KVConfig, queue: Any) -> None:
    """One worker: takes the next owed group until there is none or the run should stop.

    What ends the run (a key that is refused, a full disk) is kept for later, so that what other workers have in
    flight, and have paid for, still becomes rows.
    """
    try:
        for owed in queue:
            if state.is_over or not admit(state, state.spending.admit(owed.group, len(owed.wanted))):
                return
            await _work_group(state, session, kv, owed)
            state.spending.settle(owed.group)
    except NiahError as err:
        state.fault = state.fault or err


async def _work_group(state: State, session: Session, kv: KVConfig, owed: Owed) -> None:
    try:
        async with state.building:
            prompts = await asyncio.to_thread(state.plan.workshop.prompts, owed.group)
    except (CellError, ConfigError) as err:
        kind = err.kind if isinstance(err, CellError) else "not_built"
        record_unbuilt(state, kv, owed, Failure(kind, str(err)))
        return
    asked = [prompts[i] for i in owed.wanted]
    left = {prompt.sha256: prompt for prompt in asked}

    def write(prompt: Prompt, reply: Reply) -> None:
        if left.pop(prompt.sha256, None) is not None:
            record(state, kv, owed.group, prompt, reply)

    state.keepers |= dict.fromkeys(left, write)
    try:
        for prompt, reply in zip(asked, await _ask(session, asked), strict=True):
            write(prompt, reply)
    finally:
        for prompt in asked:
            del state.keepers[prompt.sha256]


def _early(state: State, prompt: Prompt, reply: Reply) -> None:
    """A reply that came before the others of its group: on disk at once. Canaries and verified samples have no row."""
    keeper = state.keepers.get(prompt.sha256)
    if keeper is not None:
        keeper(prompt, reply)


def _without_cached(state: State, owed: dict[str, list[Owed]]) -> dict[str, list[Owed]]:
    """What must still be asked when the answers that are in the cache have become rows."""
    if state.answers.store is None:
        return owed
    left = {kv.name: _from_cache(state, kv, owed[kv.name]) for kv in state.plan.kvs}
    text = f"{_cells(owed) - _cells(left):,} answers from the cache {str(state.answers.store.path)!r}"
    state.events.emit(ev.Note(f"{text}, {_cells(left):,} prompts to ask"))
    return left


def _from_cache(state: State, kv: KVConfig, owed: Sequence[Owed]) -> list[Owed]:
    """Write the rows of cells whose answers are in the cache; returns what must still be asked."""
    left = []
    for one in owed:
        try:
            prompts = state.plan.workshop.prompts(one.group)
        except (CellError, ConfigError):
            left.append(one)  # told where it would be asked
            continue
        asked = [prompts[i] for i in one.wanted]
        group = one.group
        missing = state.answers.take(kv, asked, partial(_reuse, state, kv, group))
        if missing:
            left.append(Owed(group, tuple(i for n, i in enumerate(one.wanted) if n in missing)))
    if not state.manifest.settled_canary(kv.name):
        _canary_from_cache(state, kv)
    return left


def _reuse(state: State, kv: KVConfig, group: Group, prompt: Prompt, answer: Answer) -> None:
    ids = state.plan.ids(kv, group, prompt.case)
    keep(state, make_row(state.plan, kv, group, prompt, answer, ids, attempt_of(state, ids), answer_cached=True))


def _canary_from_cache(state: State, kv: KVConfig) -> None:
    reference = state.plan.reference
    if reference not in (None, kv.name) and not state.manifest.settled_canary(str(reference)):
        return  # it could not be compared yet
    try:
        prompts = canary_prompts(state.plan.config, state.plan.info)
    except ConfigError:
        return  # told where it would be asked
    replies = state.answers.all(kv, prompts)
    if replies is None:
        return
    result = judge_replies(prompts, replies, state.manifest.reference_canary() if kv.name != reference else None)
    state.manifest.canary(kv.name, result)
    state.events.emit(ev.CanaryDone(kv.name, result.state, result.why))


async def _ask(session: Session, prompts: Sequence[Prompt]) -> list[Reply]:
    try:
        with boundary("engine", "the backend"):
            return await session.answer(prompts)
    except CellError as err:
        return [Failure(err.kind, str(err), err.retryable) for _ in prompts]


async def _verify(state: State, engine: Engine, kv: KVConfig) -> None:
    """Ask a sample again with every prompt processed from its first token, and compare the answers."""
    sample = [g for g in state.plan.groups if g.length == min(state.plan.lengths)][:VERIFY_GROUPS]
    tally = Verified()
    async with engine.session(_request(state, kv, reuse=False)) as session:
        for group in sample:
            prompts = state.plan.workshop.prompts(group)
            replies = await _ask(session, prompts)
            count_beside(state, replies)
            for prompt, reply in zip(prompts, replies, strict=True):
                tally.add(state.rows.get(state.plan.ids(kv, group, prompt.case).cell), reply)
    state.manifest.reuse_check(kv.name, tally.to_json())
    state.events.emit(ev.Note(tally.sentence(kv), tally.is_warning))
