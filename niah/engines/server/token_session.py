"""A session of an inference server that takes token ids: what vLLM's, llama.cpp's and further servers have in common.

A backend brings a ``TokenServer``: the words of its requests, what an event of its replies means, and its metrics.
Requests in flight, the growing reply, the score of the expected answer and faults are here, once for all of them.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.http.faults import reading
from niah.engines.server.http import HttpClient
from niah.engines.server.process import ServerProcess
from niah.errors import BackendUnavailable, CellError, boundary
from niah.types import Answer, Failure, KVUsage, Prompt, Reply, Timing

# faults after which it is looked whether the server is still there
_HEALTH_MATTERS = ("connection_lost", "server_error", "timeout")
# stands for a token whose id the server did not send
_UNKNOWN = -1

W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class StreamDelta:
    """What one event of a streamed reply adds; None for what it does not say.

    Attributes:
        token_ids: None from a server that sends no ids, with one token an event.
        logprobs: for each new token, log-probabilities by token id: of the expected answer's tokens, or of the chosen
            one alone.
        finish: ``end`` (end of sequence), ``length`` (budget used up), or empty while it goes on.
        prompt_ids: the prompt as the server read it.
        prompt_tokens, output_tokens, cached_tokens: as the server counts them.
        prefill_s: seconds that the server took for the prompt.
    """

    text: str = ""
    token_ids: Sequence[int] | None = ()
    logprobs: Sequence[Mapping[int, float | None]] = ()
    finish: str = ""
    prompt_ids: Sequence[int] | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    prefill_s: float | None = None


@dataclass
class StreamState:
    """A streamed reply as far as it has come.

    Attributes:
        has_ids: whether the server sends token ids.
        cut: tokens of the reply after which nothing could change its judgement; None until then.
        cut_text: the reply's text up to there.
    """

    tokens: list[int] = field(default_factory=list)
    text: str = ""
    logprobs: list[Mapping[int, float | None]] = field(default_factory=list)
    finish: str = ""
    has_ids: bool = True
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    prefill_s: float | None = None
    cut: int | None = None
    cut_text: str = ""
    started_at: float = field(default_factory=time.perf_counter)
    first_at: float | None = None
    done_at: float | None = None

    @property
    def stop(self) -> str:
        """As ``Answer.stop``."""
        return self.finish if self.cut is None else "stop"

    @property
    def generated(self) -> int:
        """Tokens that the model produced, the end of the sequence and what came after the cut included."""
        return self.output_tokens or len(self.tokens)

    @property
    def answer_tokens(self) -> list[int]:
        """Tokens of the answer: the end of the sequence is no part of it."""
        return self.tokens[:-1] if self.stop == "end" else self.tokens[: self.cut]

    def add(self, delta: StreamDelta) -> None:
        """All that a delta says beside its tokens."""
        self.text += delta.text
        self.logprobs += delta.logprobs
        self.finish = delta.finish or self.finish
        for name in ("prompt_tokens", "output_tokens", "cached_tokens", "prefill_s"):
            value = getattr(delta, name)
            if value is not None:
                setattr(self, name, value)


class TokenServer(ABC, Generic[W]):
    """The words and metrics of one kind of server. Every method that reads a reply may raise what a bad value raises.

    Attributes:
        name: in messages, for instance ``vLLM``.
        path: of the requests.
        decodes: whether the text is decoded here from the ids, token by token; else the server's own text is taken.
        reads_to_end: whether a reply must be read to its end, as only that has counts; else it is cut off when nothing
            could change its judgement.
        max_in_flight: requests at a time.
        max_tokens: longest prompt with its answer; None where the server does not say.
        scores: whether the expected answer is scored.
    """

    name: ClassVar[str]
    path: ClassVar[str]
    decodes: ClassVar[bool] = True
    reads_to_end: ClassVar[bool] = True
    max_in_flight: int = 1
    max_tokens: int | None = None
    scores: bool = True

    def __init__(self, client: HttpClient) -> None:
        self.client = client

    @abstractmethod
    def body(self, prompt: Prompt) -> dict[str, Any]:
        """The streamed, greedy request."""

    @abstractmethod
    def deltas(self, event: Mapping[str, Any]) -> Iterable[StreamDelta]:
        """What an event adds to the reply."""

    @abstractmethod
    async def score(self, prompt: Prompt, positions: range) -> Sequence[float | None]:
        """Log-probabilities of the expected answer's tokens at these positions, each behind all tokens before it.

        None stands for what the server does not tell; it may be the last.
        """

    @abstractmethod
    def in_flight(self) -> AbstractContextManager[W]:
        """Entered while a request is in flight; what it yields is given to ``memory``."""

    @abstractmethod
    def memory(self, prompt: Prompt, generated: int, watch: W) -> KVUsage:
        """KV memory of a reply of so many generated tokens."""

    @abstractmethod
    def effective(self) -> dict[str, Any]:
        """Settings in force, as the server says; see ``Session.effective``."""

    def is_last(self, event: Mapping[str, Any]) -> bool:  # noqa: ARG002  most servers end a stream by [DONE]
        """Whether an event is the last one of a stream."""
        return False

    def first_token(self) -> None:
        """Called when the first token of a reply has come: the whole prompt is stored now."""
        return

    def output_tokens(self, state: StreamState) -> int:
        """Tokens of the answer as a row has them: with the end of the sequence."""
        return len(state.answer_tokens) + (state.stop == "end")


class TokenSession(Generic[W]):
    """One server under one KV setting. Its ``max_in_flight`` holds over all groups; prompts are sent in their order.

    Attributes:
        gone: the failure of all further prompts once the server is no longer there.

    Args:
        process: of a server that was started here; None for one that runs already.
    """

    def __init__(
        self, server: TokenServer[W], info: ModelInfo, request: SessionRequest, process: ServerProcess | None
    ) -> None:
        self._server, self._info, self._request, self._process = server, info, request, process
        self._slots = asyncio.Semaphore(server.max_in_flight)
        self._over: BackendUnavailable | None = None
        self.gone: Failure | None = None

    @property
    def max_in_flight(self) -> int:
        return self._server.max_in_flight

    def effective(self) -> dict[str, Any]:
        """See ``Session``."""
        return self._server.effective()

    async def answer(self, group: Sequence[Prompt]) -> list[Reply]:
        """Answers in order.

        Raises:
            BackendUnavailable: the server refuses all requests: its key, its path or its model is wrong.
        """
        replies = await asyncio.gather(*(self._one(prompt) for prompt in group))
        if self._over is not None:
            raise self._over
        self._request.on_tokens(len(group[0].context))
        return replies

    async def _one(self, prompt: Prompt) -> Reply:
        async with self._slots:
            if self.gone is not None:
                return self.gone
            if self._over is not None:
                return Failure("stopped", str(self._over), retryable=True)
            try:
                with boundary("engine", f"the {self._server.name} server"):
                    return await self._ask(prompt)
            except BackendUnavailable as err:
                self._over = err
                return Failure("stopped", str(err), retryable=True)
            except CellError as err:
                return await self._failure(prompt, err)

    async def _ask(self, prompt: Prompt) -> Answer:
        server, state = self._server, StreamState()
        with server.in_flight() as watch:
            await self._stream(prompt, state)
        self._check(prompt, state)
        logprob = None
        if server.scores:
            # it is in flight too, so that what it holds is not taken for another request's
            with server.in_flight():
                logprob = await self._gold_logprob(prompt, state)
        return self._reply(prompt, state, server.memory(prompt, state.generated, watch), logprob)

    async def _stream(self, prompt: Prompt, state: StreamState) -> None:
        server = self._server
        async with aclosing(server.client.events(server.path, server.body(prompt), server.is_last)) as events:
            async for event in events:
                with reading(server.path):
                    for delta in server.deltas(event):
                        self._take(prompt, state, delta)
                if state.cut is not None and not server.reads_to_end:
                    break
        state.done_at = state.done_at or time.perf_counter()

    def _take(self, prompt: Prompt, state: StreamState, delta: StreamDelta) -> None:
        if state.first_at is None:
            state.first_at = time.perf_counter()
            self._server.first_token()
        if delta.prompt_ids is not None and list(delta.prompt_ids) != prompt.ids():
            raise CellError("prompt_changed", "the server read other tokens than were sent to it")
        state.has_ids = state.has_ids and delta.token_ids is not None
        tokens = (_UNKNOWN,) if delta.token_ids is None else delta.token_ids
        state.add(delta)
        if not (self._server.decodes and state.has_ids):
            state.tokens += tokens
            if not state.finish:
                self._cut_where_complete(prompt, state, state.text)
            return
        # one token at a time, as an engine stepped by hand would stop between any two
        for position, token in enumerate(tokens, start=1):
            state.tokens.append(token)
            if state.cut is None and not (state.finish and position == len(tokens)):
                self._cut_where_complete(prompt, state, self._info.tokenizer.decode(state.tokens))

    def _cut_where_complete(self, prompt: Prompt, state: StreamState, text: str) -> None:
        if state.cut is None and self._request.is_complete(text, prompt.case):
            state.cut, state.cut_text, state.done_at = len(state.tokens), text, time.perf_counter()

    def _check(self, prompt: Prompt, state: StreamState) -> None:
        is_open = not state.finish and (state.cut is None or self._server.reads_to_end)
        if is_open or state.prompt_tokens is None:
            raise CellError("bad_reply", "the reply ended without a reason for its end, or without counts of tokens")
        if state.prompt_tokens != prompt.token_count:
            reason = f"{prompt.token_count:,} prompt tokens were sent and the server counted {state.prompt_tokens:,}"
            raise CellError("prompt_changed", reason)

    def _reply(self, prompt: Prompt, state: StreamState, memory: KVUsage, logprob: float | None) -> Answer:
        server, first = self._server, (state.first_at or state.started_at) - state.started_at
        # with others in flight the wait for the first token is theirs too
        waited = first if server.max_in_flight == 1 else 0.0
        text = state.text if state.cut is None else state.cut_text
        return Answer(
            text=self._info.tokenizer.decode(state.answer_tokens) if server.decodes and state.has_ids else text,
            stop=state.stop,
            prompt_tokens=prompt.token_count,
            output_tokens=server.output_tokens(state),
            cached_tokens=state.cached_tokens or 0,
            logprob=logprob,
            timing=Timing(
                prefill_s=waited if state.prefill_s is None else state.prefill_s,
                first_token_s=first,
                total_s=(state.done_at or state.started_at) - state.started_at,
            ),
            memory=memory,
        )

    async def _gold_logprob(self, prompt: Prompt, state: StreamState) -> float | None:
        """Log-probability of the expected answer, teacher-forced; None when the server cannot say.

        As far as the reply follows the expected answer, and for the token where it leaves it if the server tells that,
        the greedy request has said it already. Only the tokens after that are asked for.
        """
        gold, total, known = prompt.gold, 0.0, 0
        for token, given, table in zip(gold, state.tokens, state.logprobs, strict=False):
            value = table.get(token)
            if value is None:
                break
            total, known = total + value, known + 1
            if given != token:
                break
        rest = range(known, len(gold))
        if not rest:
            return total
        values = await self._server.score(prompt, rest)
        found = [value for value in values if value is not None]
        return total + sum(found) if len(found) == len(rest) else None

    async def _failure(self, prompt: Prompt, error: CellError) -> Failure:
        """The row's fault; when the server itself is gone, all that follows fails at once."""
        if error.kind in _HEALTH_MATTERS and not await self._is_alive():
            self.gone = self.gone or Failure("server_gone", self._why_gone(error))
            return self.gone
        message = str(error)
        if error.kind == "context_too_long":
            limit = self._server.max_tokens
            message = (
                f"{prompt.token_count:,} prompt tokens and an answer of {prompt.answer_budget} do not fit into the "
                f"{f'{limit:,}' if limit else 'unknown number of'} tokens that the server takes: {message}"
            )
        return Failure(error.kind, message, error.retryable)

    async def _is_alive(self) -> bool:
        if self._process is not None and not self._process.is_running:
            return False
        return await self._server.client.is_healthy()

    def _why_gone(self, error: CellError) -> str:
        if self._process is None:
            return f"the server at {self._server.client.base_url} no longer answers ({error})"
        last = self._process.last_lines(1)
        end = f" ends with: {last[0]}" if last else " is empty"
        log = f"its log {str(self._process.log)!r}{end}"
        return f"the {self._server.name} server ended during the run ({error}); {log}"
