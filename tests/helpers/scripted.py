"""A plan run in a folder of its own on an engine that a function of the test answers for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from niah.config import build_config
from niah.engines.base import Engine, Session, SessionRequest
from niah.runner import events as ev
from niah.runner.adaptive import Rounds
from niah.runner.canary import CANARY_DEPTHS
from niah.runner.loop import run_plan
from niah.runner.manifest import Manifest
from niah.runner.plan import Plan, make_plan
from niah.runner.state import Stop
from niah.store.folder import RunFolder
from niah.store.read import read_rows
from niah.store.schema import Row
from niah.types import Answer, Prompt, Reply


def planned(*, lengths: str = "512", depths: str = "2", trials: int | str = 2, **settings: Any) -> Plan:
    """A plan for the fake backend, with bf16 alone unless ``kv`` says otherwise."""
    grid = {"lengths": lengths, "depths": depths, "trials": trials}
    return make_plan(build_config({"backend": {"name": "fake"}, "kv": ["bf16"], "grid": grid, **settings}))


def right(prompt: Prompt, **changes: Any) -> Answer:
    """The expected answer to a prompt."""
    fields = {"stop": "stop", "prompt_tokens": prompt.token_count, "output_tokens": 3, **changes}
    return Answer(**{"text": prompt.case.gold, **fields})


def is_canary(prompts: Sequence[Prompt]) -> bool:
    """Whether a group is the canaries'."""
    return [prompt.case.depth for prompt in prompts] == list(CANARY_DEPTHS)


class Collected:
    """All events of a run."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []

    def handle(self, event: ev.Event) -> None:
        self.events.append(event)

    def notes(self) -> str:
        return "\n".join(event.text for event in self.events if isinstance(event, ev.Note))


@dataclass
class ScriptedSession:
    """Answers by the test's function, which is given the request too."""

    reply: Callable[[SessionRequest, Sequence[Prompt]], Awaitable[list[Reply]]]
    request: SessionRequest
    max_in_flight: int

    def effective(self) -> dict[str, Any]:
        return {"kv": self.request.kv.name}

    async def answer(self, group: Sequence[Prompt]) -> list[Reply]:
        return await self.reply(self.request, group)


@dataclass
class ScriptedRun:
    """A folder in which a plan is run, once or again.

    Attributes:
        reply: what the engine answers to a group; by default the expected answers.
        stop: a new one for each run.
        folder: of the run under way.
    """

    plan: Plan
    out: Path
    max_in_flight: int = 1
    seen: Collected = field(default_factory=Collected)
    stop: Stop = field(default_factory=Stop)

    async def reply(self, request: SessionRequest, group: Sequence[Prompt]) -> list[Reply]:
        return [right(prompt) for prompt in group]

    def run(
        self,
        reply: Callable[[SessionRequest, Sequence[Prompt]], Awaitable[list[Reply]]] | None = None,
        rounds: Rounds | None = None,
    ) -> str:
        """Run the plan to its end; returns its status."""
        answer = reply or self.reply

        @asynccontextmanager
        async def session(request: SessionRequest) -> AsyncIterator[Session]:
            yield ScriptedSession(answer, request, self.max_in_flight)

        @asynccontextmanager
        async def open_engine(*_: object) -> AsyncIterator[Engine]:
            yield _Engine(session)

        plan = replace(self.plan, backend=replace(self.plan.backend, open=open_engine))
        self.stop = Stop(deadline=self.stop.deadline)
        with self.opened() as folder:
            manifest = Manifest(plan, folder, "niah run", "0")
            return asyncio.run(run_plan(plan, folder, manifest, ev.Events([self.seen]), self.stop, rounds))

    @contextmanager
    def opened(self) -> Iterator[RunFolder]:
        with RunFolder.find_or_create(self.out, "test", self.plan.run_identity(), "2026-01-01", fresh=False) as folder:
            yield folder

    def rows(self) -> list[Row]:
        """All rows on disk, in the order in which they were written."""
        (path,) = self.out.iterdir()
        return list(read_rows(RunFolder(path)).rows)

    def manifest(self) -> dict[str, Any]:
        (path,) = self.out.iterdir()
        return RunFolder(path).manifest()


@dataclass
class _Engine:
    session: Any
