"""A session of a hosted API: prompts sent as text within limits, retried, and every fault on its own row."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from niah.engines.base import ModelInfo, Session, SessionRequest
from niah.engines.hosted.adapter import ApiAdapter, Call, Completion, call_of, context_of
from niah.engines.hosted.batch import ApiBatches, BatchAdapter
from niah.engines.hosted.options import ApiOptions, BatchOptions
from niah.engines.hosted.retries import SharedPause, with_retries
from niah.engines.http.faults import ApiFault, RefusedByFilter
from niah.errors import BackendUnavailable, CellError, ConfigError, boundary
from niah.types import Answer, Failure, Prompt, Reply, Timing

# cells that fail one after the other, each after all its attempts, until the rest is left to the next run
_MOST_FAILURES_IN_A_ROW = 3
_COUNTED_FAULTS = ("connection_lost", "timeout", "server_error", "rate_limited")
_KEPT_IDENTITIES = 4096
# longest token, and what is allowed on top for servers that go on past the limit
_CHARACTERS_A_TOKEN = 64
_CHARACTERS_SPARE = 65_536


class ApiSession:
    """One model behind an API. ``concurrency`` requests are in flight at a time, over all groups."""

    def __init__(self, options: ApiOptions, info: ModelInfo, request: SessionRequest, adapter: ApiAdapter) -> None:
        from aiolimiter import AsyncLimiter

        self._options, self._info, self._request, self._adapter = options, info, request, adapter
        self._slots = asyncio.Semaphore(options.concurrency)
        tokens, requests = options.tokens_per_minute, options.requests_per_minute
        # a bucket no larger than the largest cell: a provider would refuse a full minute's worth at once
        size = max(request.max_length, (tokens or 0) / 60)
        self._token_limit = AsyncLimiter(size, 60 * size / tokens) if tokens else None
        self._request_limit = AsyncLimiter(1, 60 / requests) if requests else None
        self._pause = SharedPause()
        self._failures_in_a_row = 0
        self._last_failure = ""
        self._over: BackendUnavailable | None = None
        self._seen: deque[bytes] = deque(maxlen=_KEPT_IDENTITIES)
        self._requests = self._retried = 0
        self._least_difference: int | None = None
        self._largest_difference: int | None = None
        self._batches: list[str] = []
        self._odd_counts: Counter[str] = Counter()

    @property
    def max_in_flight(self) -> int:
        return self._options.concurrency

    def effective(self) -> dict[str, Any]:
        """What was really done; the KV cache of an API is not observable."""
        return {
            **self._adapter.effective(),
            "kv.observable": False,
            "prefill": self._info.assistant_prefill,
            "counted_by": self._info.counter.name if self._info.counter else "",
            "requests": self._requests,
            "requests_retried": self._retried,
            "count_difference_min": self._least_difference,
            "count_difference_max": self._largest_difference,
            **({"counts_left_out": self._left_out()} if self._odd_counts else {}),
            **({"batches": ", ".join(self._batches)} if self._batches else {}),
        }

    async def answer(self, group: Sequence[Prompt]) -> list[Reply]:
        """Answers in order. The first question of a context goes alone, so that the others find it in the cache.

        Raises:
            BackendUnavailable: the service takes nothing from us any more: no prompt of this group has an answer.
        """
        self.raise_if_over()
        with boundary("engine", "the prompt"):
            context = context_of(group[0], self._info.tokenizer)
        alone = 1 if self._request.reuse and len(group) > 1 else 0
        replies = [await self._one(prompt, context) for prompt in group[:alone]]
        replies += await asyncio.gather(*(self._one(prompt, context) for prompt in group[alone:]))
        if not any(isinstance(reply, Answer) for reply in replies):
            self.raise_if_over()
        self._request.on_tokens(len(group[0].context))
        return replies

    def note_batch(self, batch_id: str) -> None:
        """Results of a batch have been read."""
        self._batches.append(batch_id)

    def from_batch(self, read: Callable[[], Completion], prompt: Prompt) -> Reply:
        """The reply to a prompt from its result in a batch, judged as one that was waited for.

        Raises:
            BackendUnavailable: every further request would fail like this one.
        """
        try:
            with boundary("engine", "the batch"):
                completion = read()
                self._check(completion, prompt.answer_budget, batched=True)
        except RefusedByFilter as err:
            return Answer(text=str(err), stop="refused", prompt_tokens=None, output_tokens=None, batched=True)
        except CellError as err:
            return self._failure(prompt, err)
        self._note_count(prompt, completion)
        return replace(_answer(_without_prefix(completion, prompt.case.answer_prefix)), batched=True)

    def raise_if_over(self) -> None:
        """At the end: whether the service had stopped taking requests.

        Raises:
            BackendUnavailable: it had, which the rows of the last cells alone would not show.
        """
        if self._over is not None:
            raise self._over

    async def _one(self, prompt: Prompt, context: str) -> Reply:
        async with self._slots:
            reply = await self._reply(prompt, context)
        # where the whole group was stopped, none of its rows is written: the error itself is shown once
        if not isinstance(reply, Failure) or reply.kind != "stopped":
            self._request.on_reply(prompt, reply)
        return reply

    async def _reply(self, prompt: Prompt, context: str) -> Reply:
        if self._over is not None:
            return Failure("stopped", str(self._over), retryable=True)
        if self._failures_in_a_row >= _MOST_FAILURES_IN_A_ROW:
            count = self._failures_in_a_row
            reason = f"not sent, for {count} in a row failed after all attempts, the last so: {self._last_failure}"
            return Failure("given_up", reason, retryable=True)
        call = call_of(prompt, self._info.tokenizer, is_cacheable=self._request.reuse, context=context)
        started = time.perf_counter()
        try:
            with boundary("engine", "the API"):
                completion, requests = await self._complete(prompt, call)
        except BackendUnavailable as err:
            self._over = self._over or err
            return Failure("stopped", str(err), retryable=True)
        except RefusedByFilter as err:
            return Answer(text=str(err), stop="refused", prompt_tokens=None, output_tokens=None)
        except CellError as err:
            return self._failure(prompt, err)
        self._failures_in_a_row = 0
        self._note_count(prompt, completion)
        return _answer(completion, requests, time.perf_counter() - started)

    async def _complete(self, prompt: Prompt, call: Call) -> tuple[Completion, int]:
        requests = 0

        async def once(attempt: int) -> Completion:
            nonlocal requests
            await self._wait(prompt)
            self.raise_if_over()
            requests = attempt
            self._requests += 1
            self._retried += attempt > 1
            try:
                completion = await self._adapter.ask(call)
            except ApiFault as fault:
                if fault.retry_after_s is not None:
                    self._pause.extend(fault.retry_after_s)
                raise
            self._check(completion, call.answer_tokens)
            return _without_prefix(completion, call.assistant_prefill)

        return await with_retries(self._options, once), requests

    async def _wait(self, prompt: Prompt) -> None:
        if self._request_limit is not None:
            await self._request_limit.acquire()
        if self._token_limit is not None:
            tokens = prompt.token_count + prompt.answer_budget + self._options.reasoning_tokens
            await self._token_limit.acquire(min(tokens, self._token_limit.max_rate))
        await self._pause.wait()

    def _check(self, completion: Completion, answer_tokens: int, *, batched: bool = False) -> None:
        """A reply that is no answer must not be judged as one, though it was billed.

        Raises:
            ApiFault: ``reply_too_large``; ``empty_answer``, ``answer_missing`` or ``duplicate_reply``, each of these
                worth asking again.
        """
        most = _CHARACTERS_A_TOKEN * (answer_tokens + self._options.reasoning_tokens) + _CHARACTERS_SPARE
        if len(completion.text) + len(completion.reasoning) > most:
            raise ApiFault("reply_too_large", f"the answer is longer than {most:,} characters, which was not asked for")
        if completion.identity:
            identity = hashlib.blake2b(completion.identity.encode(), digest_size=16).digest()
            if identity in self._seen:
                raise ApiFault("duplicate_reply", "the very same reply came to another request before", retryable=True)
            self._seen.append(identity)
        if completion.text.strip() or completion.stop in ("length", "refused"):
            return
        if completion.reasoning or not completion.output_tokens:
            self._request.on_discarded(replace(_answer(completion), batched=batched))
        if completion.reasoning:
            reason = "the reply holds reasoning and no answer, though it was not cut off"
            raise ApiFault("answer_missing", reason, retryable=True)
        if not completion.output_tokens:
            raise ApiFault("empty_answer", "the reply is empty, and no token of it was counted", retryable=True)

    def _left_out(self) -> str:
        named = ", ".join(f"{name} ({count})" for name, count in sorted(self._odd_counts.items()))
        return f"{named}: what the replies say there is no count of tokens"

    def _note_count(self, prompt: Prompt, completion: Completion) -> None:
        self._odd_counts.update(completion.odd_counts)
        if completion.prompt_tokens is None:
            return
        difference = completion.prompt_tokens - prompt.token_count
        least, largest = self._least_difference, self._largest_difference
        self._least_difference = difference if least is None else min(least, difference)
        self._largest_difference = difference if largest is None else max(largest, difference)

    def _failure(self, prompt: Prompt, error: CellError) -> Failure:
        message = str(error)
        if error.kind in _COUNTED_FAULTS:
            self._failures_in_a_row += 1
            self._last_failure = message
        if error.kind == "context_too_long":
            limit = f"{self._info.context_tokens:,}" if self._info.context_tokens else "unknown number of"
            message = (
                f"{prompt.token_count:,} prompt tokens and an answer of {prompt.answer_budget:,} do not fit into the "
                f"{limit} tokens that the model takes: {message}"
            )
        return Failure(error.kind, message, error.retryable)


class BatchingSession(ApiSession):
    """One model behind an API that has batches too."""

    def __init__(
        self,
        options: BatchOptions,
        info: ModelInfo,
        request: SessionRequest,
        adapter: ApiAdapter,
        batches: BatchAdapter,
    ) -> None:
        super().__init__(options, info, request, adapter)
        self.batches = ApiBatches(options, info, batches, self)


def _answer(completion: Completion, requests: int = 1, elapsed_s: float = 0.0) -> Answer:
    return Answer(
        text=completion.text,
        stop=completion.stop,
        prompt_tokens=completion.prompt_tokens,
        output_tokens=completion.output_tokens,
        cached_tokens=completion.cached_tokens,
        cache_write_tokens=completion.cache_write_tokens,
        reasoning=completion.reasoning,
        reasoning_tokens=completion.reasoning_tokens,
        answer_logprob=completion.answer_logprob,
        requests=requests,
        timing=Timing(first_token_s=completion.first_token_s or 0.0, total_s=elapsed_s),
    )


def _without_prefix(completion: Completion, prefix: str) -> Completion:
    """llama.cpp gives the begun answer back with what it went on with."""
    return replace(completion, text=completion.text.removeprefix(prefix)) if prefix else completion


@asynccontextmanager
async def opened(
    options: ApiOptions,
    info: ModelInfo,
    request: SessionRequest,
    adapter: ApiAdapter,
    batches: BatchAdapter | None = None,
) -> AsyncIterator[Session]:
    """A session whose connections are closed when it is over.

    Args:
        batches: the service's batches, where it has any; the options must then be ``BatchOptions``.

    Raises:
        ConfigError: one cell has more tokens than a limit allows.
    """
    limits = {"tokens_per_minute": options.tokens_per_minute}
    if isinstance(options, BatchOptions):
        limits["batch_tokens"] = options.batch_tokens
    try:
        for name, limit in limits.items():
            if limit is not None and request.max_length + options.reasoning_tokens > limit:
                raise ConfigError(
                    f"a cell of {request.max_length:,} tokens never fits into backend.{name}={limit:,}: raise it or "
                    "ask for shorter lengths."
                )
        if batches is not None and isinstance(options, BatchOptions):
            session: ApiSession = BatchingSession(options, info, request, adapter, batches)
        else:
            session = ApiSession(options, info, request, adapter)
        yield session
        session.raise_if_over()
    finally:
        await adapter.close()
