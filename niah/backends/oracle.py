"""An analytic reader whose heatmap is known in advance, so that the whole harness can be checked without a model.

It looks at the tokens really sent, not at the plan: a needle is answered when all its tokens lie in what it sees.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from pydantic import Field

from niah.engines.base import BackendOptions, BackendPlugin, ModelInfo, Session, SessionRequest, per_session
from niah.engines.support import EVERYTHING
from niah.errors import ConfigError
from niah.grid import seed_from
from niah.kv.config import KVConfig
from niah.kv.grammar import parse_one
from niah.models.shape import ModelShape
from niah.prompts.tokens import Template, WordTokenizer
from niah.types import Answer, Host, Problem, Prompt, Reply


class OracleOptions(BackendOptions):
    """What the oracle can see; conditions add up.

    Attributes:
        window: newest prompt tokens it sees; None sees all. A KV setting's own window narrows it further.
        sinks: first prompt tokens it sees besides the window.
        every: it sees only tokens at every n-th position when larger than 1: no fact survives that.
        loss: share of needles lost, drawn by the cell's seed: a number for all settings, or one per KV setting.
        logprob_lost: log-probability it reports for a lost needle; a found one has −0.01.
        context_tokens: longest context it accepts.
    """

    window: int | None = Field(default=None, ge=1)
    sinks: int = Field(default=0, ge=0)
    every: int = Field(default=1, ge=1)
    loss: float | dict[str, float] = 0.0
    logprob_lost: float = -12.0
    context_tokens: int = Field(default=4_194_304, ge=1)


def _describe(options: OracleOptions, model: str) -> ModelInfo:
    return ModelInfo(
        name=model,
        source=model,
        revision="1",
        tokenizer=WordTokenizer(),
        template=Template("completion", prefix="", suffix=""),
        context_tokens=options.context_tokens,
    )


def _check(options: OracleOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:  # noqa: ARG001
    if isinstance(options.loss, dict):
        for name in options.loss:
            try:
                parse_one(name)
            except ConfigError as err:
                return [Problem("backend.loss", name, str(err).rstrip("."))]
    losses = options.loss.values() if isinstance(options.loss, dict) else (options.loss,)
    if any(not 0 <= share <= 1 for share in losses):
        return [Problem("backend.loss", str(options.loss), "a share of lost needles lies between 0 and 1", "Use 0.1.")]
    return []


def visible(tokens: int, window: int | None, sinks: int, every: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Boolean ``[tokens]``: which prompt positions the oracle sees."""
    seen = np.ones(tokens, dtype=bool)
    if window is not None:
        seen[: max(0, tokens - window)] = False
        seen[:sinks] = True
    if every > 1:
        seen &= np.arange(tokens) % every == 0
    return seen


class _OracleSession:
    max_in_flight = 1

    def __init__(self, options: OracleOptions, request: SessionRequest) -> None:
        self._options, self._request = options, request
        asked = request.kv.window
        windows = [w for w in (options.window, asked.size if asked else None) if w is not None]
        self._window = min(windows, default=None)
        self._sinks = max(options.sinks, asked.sinks if asked else 0)
        self._tokenizer = WordTokenizer()

    def effective(self) -> dict[str, Any]:
        return {"window": self._window, "sinks": self._sinks, "every": self._options.every, "loss": self._loss()}

    def _loss(self) -> float:
        loss = self._options.loss
        return loss.get(self._request.kv.name, 0.0) if isinstance(loss, dict) else loss

    async def answer(self, group: Sequence[Prompt]) -> list[Reply]:
        self._request.on_tokens(len(group[0].context))
        return [self._reply(prompt) for prompt in group]

    def _reply(self, prompt: Prompt) -> Answer:
        found = self._finds(prompt)
        text = f" {prompt.case.expected[0]}." if found else " nowhere to be seen."
        return Answer(
            text=text,
            stop="stop",
            prompt_tokens=prompt.token_count,
            output_tokens=len(self._tokenizer.encode(text)),
            logprob=-0.01 if found else self._options.logprob_lost,
        )

    def _finds(self, prompt: Prompt) -> bool:
        """Look for the needle in the prompt's own tokens, then whether all of them are seen."""
        text = self._tokenizer.decode(prompt.ids())
        needle = next(n for n in prompt.case.needles if n.value in prompt.case.expected)
        at = re.search(re.escape(needle.text), text)
        if at is None:
            return False
        first = len(self._tokenizer.encode(text[: at.start()]))
        last = len(self._tokenizer.encode(text[: at.end()]))
        seen = visible(prompt.token_count, self._window, self._sinks, self._options.every)
        if not seen[first:last].all():
            return False
        draw = seed_from("oracle", self._request.kv.name, prompt.sha256, needle.key) % 1_000_000
        return draw >= self._loss() * 1_000_000


@asynccontextmanager
async def _session(options: OracleOptions, info: ModelInfo, request: SessionRequest) -> AsyncIterator[Session]:  # noqa: ARG001
    yield _OracleSession(options, request)


PLUGIN = BackendPlugin(
    name="oracle",
    summary="an analytic reader with a known heatmap (window, sinks, every n-th token, share lost): no model",
    options=OracleOptions,
    describe=_describe,
    check=_check,
    support=lambda: EVERYTHING,
    open=per_session(_session),
    default_model="analytic",
    is_known_here=lambda *_: True,
)
