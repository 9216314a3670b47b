"""Scripted answers, for tests and for trying the command line: gold, echo, wrong, fixed texts, faults on schedule."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from pydantic import Field

from niah.engines.base import QUIET, BackendOptions, BackendPlugin, ModelInfo, Session, SessionRequest, per_session
from niah.engines.support import EVERYTHING
from niah.errors import CellError
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.prompts.tokens import Template, WordTokenizer
from niah.types import Answer, Failure, Host, Problem, Prompt, Reply


class FakeOptions(BackendOptions):
    """Options of the fake backend.

    Attributes:
        reply: ``gold``, ``echo`` (repeats the question), ``wrong``, or any other text, answered to everything.
        fail_every: every n-th question of a session fails; 0 never.
        fail_kind: the failure's kind.
        break_kv: KV settings that answer with garbage.
        delay_s: seconds that each group takes.
        provider: whose prices its tokens have, by the name that genai-prices has for it; the model is then one of its.
        prefix_cache: whether a context is read from a prefix cache after its first question.
        crash_after: groups after which the whole process gives up with an engine error; 0 never.
    """

    reply: str = "gold"
    fail_every: int = Field(default=0, ge=0, json_schema_extra=QUIET)
    fail_kind: str = Field(default="scripted", json_schema_extra=QUIET)
    break_kv: tuple[str, ...] = ()
    delay_s: float = Field(default=0.0, ge=0, json_schema_extra=QUIET)
    crash_after: int = Field(default=0, ge=0, json_schema_extra=QUIET)
    provider: str | None = Field(default=None, json_schema_extra=QUIET)
    prefix_cache: bool = False
    context_tokens: int = 4_194_304


def _describe(options: FakeOptions, model: str) -> ModelInfo:
    return ModelInfo(
        name=model,
        source=model,
        revision="none",
        tokenizer=WordTokenizer(),
        template=Template("completion", prefix="", suffix=""),
        context_tokens=options.context_tokens,
        provider=options.provider,
    )


def _check(options: FakeOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:  # noqa: ARG001
    return []


class _FakeSession:
    max_in_flight = 1

    def __init__(self, options: FakeOptions, request: SessionRequest) -> None:
        self._options, self._request = options, request
        self._asked = 0
        self._groups = 0

    def effective(self) -> dict[str, Any]:
        return {"reply": self._options.reply, "kv.dtype": self._request.kv.keys.element}

    async def answer(self, group: Sequence[Prompt]) -> list[Reply]:
        self._groups += 1
        if self._options.crash_after and self._groups > self._options.crash_after:
            raise CellError("engine", "the scripted engine gave up")
        if self._options.delay_s:
            await asyncio.sleep(self._options.delay_s)
        self._request.on_tokens(len(group[0].context))
        cached = len(group[0].context) if self._options.prefix_cache else 0
        first, *others = [self._reply(prompt) for prompt in group]
        return [first, *(replace(r, cached_tokens=cached) if isinstance(r, Answer) else r for r in others)]

    def _reply(self, prompt: Prompt) -> Reply:
        self._asked += 1
        if self._options.fail_every and self._asked % self._options.fail_every == 0:
            return Failure(self._options.fail_kind, "the scripted backend was told to fail here")
        scripted = {"gold": prompt.case.gold, "echo": prompt.case.question, "wrong": " 0000000."}
        text = scripted.get(self._options.reply, self._options.reply)
        if self._request.kv.name in self._options.break_kv:
            text = " the the of of and and"
        return Answer(text=text, stop="stop", prompt_tokens=prompt.token_count, output_tokens=len(text.split()))


@asynccontextmanager
async def _session(options: FakeOptions, info: ModelInfo, request: SessionRequest) -> AsyncIterator[Session]:  # noqa: ARG001
    yield _FakeSession(options, request)


PLUGIN = BackendPlugin(
    name="fake",
    summary="scripted answers, for tests: no model",
    options=FakeOptions,
    describe=_describe,
    check=_check,
    support=lambda: EVERYTHING,
    open=per_session(_session),
    default_model="scripted",
    is_known_here=lambda *_: True,
)
