"""The loop on a scripted engine: what becomes a row, when it is written, and what ends a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from niah.engines.base import SessionRequest
from niah.errors import BackendUnavailable, CellError
from niah.runner import events as ev
from niah.runner.adaptive import Rounds
from niah.runner.prompt_builder import Group, PromptBuilder
from niah.store.schema import Row
from niah.types import Failure, Prompt, Reply
from tests.helpers.scripted import ScriptedRun, is_canary, planned, right

Open: TypeAlias = Mapping[str, str]


@pytest.mark.parametrize("fault", [CellError("engine", "it gave up"), ZeroDivisionError("a bug of the engine")])
def test_a_fault_of_the_engine_becomes_failed_rows_and_the_run_goes_on(tmp_path: Path, fault: Exception) -> None:
    run = ScriptedRun(planned(trials=3), tmp_path)
    asked = 0

    async def reply(_: SessionRequest, group: Sequence[Prompt]) -> list[Reply]:
        nonlocal asked
        asked += not is_canary(group)
        if asked == 2:
            raise fault
        return [right(prompt) for prompt in group]

    assert run.run(reply) == "finished"
    assert [row.outcome for row in run.rows()] == ["answered"] * 2 + ["failed"] * 2 + ["answered"] * 2
    failed = run.rows()[2]
    assert (failed.correct, failed.score, failed.error_kind) == (None, None, "engine")
    assert run.run() == "finished"
    again = run.rows()[6:]
    assert [(row.cell_id, row.attempt, row.outcome) for row in again] == [
        (row.cell_id, 2, "answered") for row in run.rows()[2:4]
    ]


def test_a_single_failure_leaves_the_other_questions_of_its_context(tmp_path: Path) -> None:
    run = ScriptedRun(planned(depths="3", trials=1), tmp_path)

    async def reply(_: SessionRequest, group: Sequence[Prompt]) -> list[Reply]:
        return [right(group[0]), Failure("timeout", "too slow"), *map(right, group[2:])]

    run.run(reply)
    assert [(row.outcome, row.correct) for row in run.rows()] == [
        ("answered", True),
        ("failed", None),
        ("answered", True),
    ]


def test_a_setting_that_fails_its_canary_is_broken_and_still_asked(tmp_path: Path) -> None:
    run = ScriptedRun(planned(kv=["bf16", "int8"]), tmp_path)

    async def reply(request: SessionRequest, group: Sequence[Prompt]) -> list[Reply]:
        return [right(prompt, **({"text": " of of"} if request.kv.name == "int8" else {})) for prompt in group]

    run.run(reply)
    settings = run.manifest()["settings"]
    assert {kv: (its["canary"]["state"], its["broken"]) for kv, its in settings.items()} == {
        "bf16": ("passed", False),
        "int8": ("broken", True),
    }
    assert [event.state for event in run.seen.events if isinstance(event, ev.CanaryDone)] == ["passed", "broken"]
    assert len(run.rows()) == 8
    # nothing but the canary is asked by the next run, and it may pass then
    run.run()
    assert run.manifest()["settings"]["int8"]["canary"]["state"] == "passed"
    assert len(run.rows()) == 8


def test_a_context_that_cannot_be_built_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ScriptedRun(planned(trials=3), tmp_path)
    prompts = PromptBuilder.prompts

    def sometimes(self: PromptBuilder, group: Group) -> list[Prompt]:
        if group == run.plan.groups[1]:
            raise CellError("needle_lost", "for the test")
        return prompts(self, group)

    with monkeypatch.context() as patch:
        patch.setattr(PromptBuilder, "prompts", sometimes)
        assert run.run() == "finished"
    assert [row.outcome for row in run.rows()] == ["answered"] * 2 + ["failed"] * 2 + ["answered"] * 2
    assert {row.error_kind for row in run.rows() if row.outcome == "failed"} == {"needle_lost"}
    run.run()
    assert [row.outcome for row in run.rows()[6:]] == ["answered"] * 2


def test_every_row_is_on_disk_before_the_next_context_is_asked(tmp_path: Path) -> None:
    run = ScriptedRun(planned(trials=4), tmp_path)
    on_disk = []

    async def reply(_: SessionRequest, group: Sequence[Prompt]) -> list[Reply]:
        if not is_canary(group):
            on_disk.append(len(run.rows()))
        return [right(prompt) for prompt in group]

    run.run(reply)
    assert on_disk == [0, 2, 4, 6]


def test_an_early_reply_is_on_disk_before_the_rest_of_its_context(tmp_path: Path) -> None:
    run = ScriptedRun(planned(depths="3", trials=1), tmp_path)
    on_disk = []

    async def reply(request: SessionRequest, group: Sequence[Prompt]) -> list[Reply]:
        replies: list[Reply] = []
        for prompt in group:
            replies.append(right(prompt))
            request.on_reply(prompt, replies[-1])
            if not is_canary(group):
                on_disk.append(len(run.rows()))
        return replies

    run.run(reply)
    assert on_disk == [1, 2, 3]
    assert len(run.rows()) == 3, "a reply that came early is not written twice"


def test_an_interrupt_keeps_what_is_in_flight_and_asks_no_more(tmp_path: Path) -> None:
    run = ScriptedRun(planned(trials=4), tmp_path)

    async def reply(_: SessionRequest, group: Sequence[Prompt]) -> list[Reply]:
        if not is_canary(group):
            run.stop.reason = "interrupted"
        return [right(prompt) for prompt in group]

    assert run.run(reply) == run.manifest()["status"] == "interrupted"
    assert len(run.rows()) == 2


def test_a_deadline_that_has_passed_ends_the_run_before_anything_is_asked(tmp_path: Path) -> None:
    run = ScriptedRun(planned(), tmp_path)
    run.stop.deadline = time.monotonic()

    async def reply(_: SessionRequest, group: Sequence[Prompt]) -> list[Reply]:
        raise AssertionError(group)

    assert run.run(reply) == run.manifest()["status"] == "budget"
    assert run.manifest()["stopped_by"] == "the time limit; the same command goes on"


def test_what_ends_the_run_waits_for_what_others_have_in_flight(tmp_path: Path) -> None:
    run = ScriptedRun(planned(trials=6), tmp_path, max_in_flight=2)
    asked = 0

    async def reply(_: SessionRequest, group: Sequence[Prompt]) -> list[Reply]:
        nonlocal asked
        if not is_canary(group):
            asked += 1
            if asked == 1:
                await asyncio.sleep(0.05)
                raise BackendUnavailable("the key is refused")
            await asyncio.sleep(0.2)
        return [right(prompt) for prompt in group]

    with pytest.raises(BackendUnavailable, match="the key is refused"):
        run.run(reply)
    assert (asked, len(run.rows())) == (2, 2), "the second context was paid for, a third is not asked"
    assert run.manifest()["status"] == "failed"


def test_a_run_that_is_complete_does_not_open_the_engine(tmp_path: Path) -> None:
    run = ScriptedRun(planned(), tmp_path)
    run.run()

    async def reply(_: SessionRequest, group: Sequence[Prompt]) -> list[Reply]:
        raise AssertionError(group)

    assert run.run(reply) == "finished"
    (_, again) = [event for event in run.seen.events if isinstance(event, ev.RunStarted)]
    assert (again.cells, again.done, again.failed_before, again.prompt_tokens) == (4, 4, 0, 0)


def test_rounds_ask_more_of_what_is_open_and_of_the_reference(tmp_path: Path) -> None:
    run = ScriptedRun(planned(kv=["bf16", "int8", "int4"], trials="auto:24"), tmp_path)
    seen: list[int] = []

    def undecided(rows: Sequence[Row], kvs: Sequence[str], reference: str | None, broken: Collection[str]) -> Open:
        assert (len(kvs), reference, list(broken)) == (3 if not seen else 2, "bf16", [])
        seen.append(len(rows))
        return {"int4": "is open"} if len(seen) == 1 else {}

    assert run.run(rounds=Rounds(run.plan, undecided)) == "finished"
    assert seen == [3 * 6 * 2, 3 * 6 * 2 + 2 * 6 * 2]
    assert run.manifest()["adaptive"]["trials"] == {"bf16": 12, "int8": 6, "int4": 12}
    assert "trials auto: stopped because every verdict is settled" in run.seen.notes()
