"""A reply's way to its row on disk, and what stops a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from niah.errors import CellError, ConfigError
from niah.runner import events as ev
from niah.runner.answer_cache import AnswerCache
from niah.runner.budget import Spending
from niah.runner.cells import PendingCells
from niah.runner.manifest import Manifest
from niah.runner.state import RunState, Stop, admit, is_pending, record, record_cached, record_not_built
from niah.store.read import read_rows
from niah.types import Failure
from tests.helpers.made_rows import make_row
from tests.helpers.scripted import Collected, ScriptedRun, planned, right


@pytest.fixture
def state(tmp_path: Path) -> Iterator[RunState]:
    plan = planned()
    with ScriptedRun(plan, tmp_path).opened() as folder:
        manifest = Manifest(plan, folder, "", "0")
        spending = Spending.of(plan, (), 0.0, 0)
        yield RunState(plan, folder, manifest, ev.Events(), Stop(), {}, spending, AnswerCache(plan, None))


def test_a_row_is_on_disk_and_counted_when_it_is_shown(state: RunState) -> None:
    class Sink:
        shown = 0

        def handle(self, event: ev.Event) -> None:
            if isinstance(event, ev.RowDone):
                self.shown += 1
                assert [row.cell_id for row in read_rows(state.folder).rows][-1] == event.row.cell_id
                assert state.rows[event.row.cell_id] == event.row
                assert state.spending.tokens > 0

    sink = Sink()
    seen = Collected()
    state.events = ev.Events([sink, seen])
    group = state.plan.groups[0]
    for cell, prompt in zip(state.plan.cells(state.plan.kvs[0], group), state.plan.builder.prompts(group), strict=True):
        record(state, cell, prompt, right(prompt))
    assert sink.shown == len(seen.events) == 2, "a sink whose check fails is switched off and counts no more"


def test_attempts_of_a_cell_are_numbered(state: RunState) -> None:
    group = state.plan.groups[0]
    cell, prompt = state.plan.cells(state.plan.kvs[0], group)[0], state.plan.builder.prompts(group)[0]
    record(state, cell, prompt, Failure("timeout", "too slow"))
    record_not_built(state, PendingCells(group, (cell,)), CellError("needle_lost", "it is gone"))
    record_not_built(state, PendingCells(group, (cell,)), ConfigError("the text ends"))
    record_cached(state, cell, prompt, right(prompt))
    rows = read_rows(state.folder).rows
    assert [(row.attempt, row.outcome, row.error_kind) for row in rows] == [
        (1, "failed", "timeout"),
        (2, "failed", "needle_lost"),
        (3, "failed", "not_built"),
        (4, "answered", "answered"),
    ]
    assert [row.answer_cached for row in rows] == [False, False, False, True]
    assert state.spending.tokens == 0, "neither a failure nor a cached answer is billed"


def test_only_cells_without_a_judgement_are_pending() -> None:
    made = {outcome: make_row("bf16", 512, 0.5, 0, None, outcome=outcome) for outcome in ("refused", "truncated")}
    assert is_pending(None)
    assert is_pending(make_row("bf16", 512, 0.5, 0, None))
    assert not any(map(is_pending, [*made.values(), make_row("bf16", 512, 0.5, 0, correct=False)]))


def test_the_first_reason_to_stop_stays(state: RunState) -> None:
    assert admit(state, admitted=True)
    assert not state.stop.due()
    state.spending.why = "the limit of 9 tokens"
    assert not admit(state, admitted=False)
    assert (state.stop.due(), state.stop.reason, state.stop.why) == (True, "budget", "the limit of 9 tokens")
    state.stop.deadline = time.monotonic() - 1
    state.spending.why = "another"
    admit(state, admitted=False)
    assert state.stop.due()
    assert state.stop.why == "the limit of 9 tokens"


def test_a_deadline_stops_when_it_is_reached() -> None:
    stop = Stop(deadline=time.monotonic() + 60)
    assert not stop.due()
    stop.deadline = time.monotonic()
    assert stop.due()
    assert stop.reason == "budget"
