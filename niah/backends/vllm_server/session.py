"""Prompts as token ids to a vLLM server, answers back; the KV memory that its metrics show beside them."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from niah.backends.vllm_server.sampler import Sampler, Watch
from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.gpu import CardReader
from niah.engines.http.faults import reading
from niah.engines.http.values import count_at, logprob_of, text_at, token_ids
from niah.engines.memory import usage_by_formula
from niah.engines.server.http import HttpClient
from niah.engines.vllm.arguments import stored_as
from niah.errors import CellError, boundary
from niah.kv.memory.totals import stored_tokens
from niah.types import Answer, Failure, KVUsage, Prompt, Reply, Timing

if TYPE_CHECKING:
    from niah.backends.vllm_server.facts import Facts
    from niah.backends.vllm_server.options import VllmServerOptions
    from niah.engines.server.process import ServerProcess

_PATH = "/v1/completions"
# what greedy decoding leaves open: without these a server takes them from the model's generation_config
_PLAIN = {
    "temperature": 0.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
# stands for a token whose id the server did not send
_UNKNOWN = -1
_HEALTH_MATTERS = ("connection_lost", "server_error", "timeout")


@dataclass
class _Heard:
    """A reply as far as it has come.

    Attributes:
        has_ids: whether the server sends token ids; an old one sends only text, with one token a chunk.
        gold_logprobs: at each generated token, the log-probabilities of the tokens of the expected answer.
        cut: tokens of the reply after which nothing could change its judgement; None until then.
    """

    tokens: list[int] = field(default_factory=list)
    has_ids: bool = True
    text: str = ""
    gold_logprobs: list[dict[int, float | None]] = field(default_factory=list)
    finish: str = ""
    usage: Mapping[str, Any] | None = None
    started_at: float = field(default_factory=time.perf_counter)
    first_at: float | None = None
    done_at: float | None = None
    generated: int = 0
    cached: int = 0
    cut: int | None = None
    cut_text: str = ""


class ServerSession:
    """One server under one KV setting. ``concurrency`` requests are in flight at a time, over all groups."""

    def __init__(
        self,
        options: VllmServerOptions,
        info: ModelInfo,
        request: SessionRequest,
        client: HttpClient,
        facts: Facts,
        process: ServerProcess | None,
    ) -> None:
        self._options, self._info, self._request = options, info, request
        self._client, self._facts, self._process = client, facts, process
        self._slots = asyncio.Semaphore(options.concurrency)
        # only a server that was started here is known to run on this machine's card
        read_card = CardReader().read if process is not None else dict
        metrics = partial(client.text, "/metrics")
        self._sampler = Sampler(metrics, options.sample_every_s, request.on_sample, read_card)
        self._scores = options.logprobs and request.reuse
        self.gone: Failure | None = None

    @property
    def max_in_flight(self) -> int:
        return self._options.concurrency

    async def start(self) -> None:
        if self._facts.cache is not None:
            await self._sampler.start()

    async def close(self) -> None:
        await self._sampler.close()

    def effective(self) -> dict[str, Any]:
        """What the server says of itself; settings that it does not publish are left out."""
        values = self._facts.effective(self._request.kv, self._info.shape)
        if self._sampler.preemptions is not None:
            values["preemptions"] = self._sampler.preemptions
        return values

    async def answer(self, group: Sequence[Prompt]) -> list[Reply]:
        replies = await asyncio.gather(*(self._one(prompt) for prompt in group))
        self._request.on_tokens(len(group[0].context))
        return list(replies)

    async def _one(self, prompt: Prompt) -> Reply:
        async with self._slots:
            if self.gone is not None:
                return self.gone
            try:
                with boundary("engine", "the vLLM server"):
                    return await self._ask(prompt)
            except CellError as err:
                return await self._failure(prompt, err)

    async def _ask(self, prompt: Prompt) -> Reply:
        heard = _Heard()
        with self._sampler.watch() as watch:
            async with aclosing(self._client.events(_PATH, self._body(prompt))) as events:
                async for event in events:
                    with reading(_PATH):
                        self._take(prompt, heard, event)
        with reading(_PATH):
            self._check(prompt, heard)
        with self._sampler.watch():
            # it is in flight too, so that what it holds is not put down to another request
            logprob = await self._gold_logprob(prompt, heard) if self._scores else None
        return self._reply(prompt, heard, watch, logprob)

    def _body(self, prompt: Prompt) -> dict[str, Any]:
        """The greedy request. The last tokens are not needed, but only a reply read to its end has a usage."""
        body = self._common() | {
            "prompt": prompt.ids(),
            "max_tokens": prompt.answer_budget,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_token_ids": True,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
        }
        return body | (_logprobs_of(prompt.gold) if self._scores else {})

    def _common(self) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._facts.model, **_PLAIN}
        if not self._request.reuse:
            # blocks are found by salt and tokens: a new salt finds none, also on a server that caches prefixes
            body["cache_salt"] = uuid.uuid4().hex
        return body

    def _take(self, prompt: Prompt, heard: _Heard, event: Mapping[str, Any]) -> None:
        heard.usage = event.get("usage") or heard.usage
        for choice in event.get("choices") or ():
            if heard.first_at is None:
                heard.first_at = time.perf_counter()
                self._sampler.poke()  # the whole prompt is stored now, and a short answer is soon over
            sent = choice.get("prompt_token_ids")
            if sent is not None and list(sent) != prompt.ids():
                raise CellError("prompt_changed", "the server read other tokens than were sent to it")
            heard.text += text_at(choice, "text")
            heard.finish = choice.get("finish_reason") or heard.finish
            heard.gold_logprobs += _read_logprobs(choice)
            self._grow(prompt, heard, choice.get("token_ids"))

    def _grow(self, prompt: Prompt, heard: _Heard, new: Sequence[int] | None) -> None:
        """Add a chunk's tokens one at a time, as an engine stepped by hand would stop between any two."""
        heard.has_ids = heard.has_ids and new is not None
        tokens = token_ids(new) if new is not None else (_UNKNOWN,)
        for position, token in enumerate(tokens, start=1):
            heard.tokens.append(token)
            if heard.cut is not None or (heard.finish and position == len(tokens)):
                continue
            text = self._info.tokenizer.decode(heard.tokens) if heard.has_ids else heard.text
            if self._request.is_complete(text, prompt.case):
                heard.cut, heard.cut_text = len(heard.tokens), text
                heard.done_at = time.perf_counter()

    def _check(self, prompt: Prompt, heard: _Heard) -> None:
        if not isinstance(heard.usage, Mapping) or heard.finish not in ("stop", "length"):
            raise CellError(
                "bad_reply", f"the reply ended by {str(heard.finish or 'nothing')[:80]!r} or without a usage"
            )
        counted = count_at(heard.usage, "prompt_tokens", 0)
        # read here, where a value of another kind is still a fault of the reply
        heard.generated = count_at(heard.usage, "completion_tokens", 0) or len(heard.tokens)
        heard.cached = count_at(heard.usage.get("prompt_tokens_details") or {}, "cached_tokens", 0)
        if counted != prompt.token_count:
            reason = f"{prompt.token_count:,} prompt tokens were sent and the server counted {counted:,}"
            raise CellError("prompt_changed", reason)
        heard.done_at = heard.done_at or time.perf_counter()

    def _reply(self, prompt: Prompt, heard: _Heard, watch: Watch, logprob: float | None) -> Answer:
        tokens, text, stop = heard.tokens, heard.text, "length"
        if heard.cut is not None:
            tokens, text, stop = tokens[: heard.cut], heard.cut_text, "stop"
        elif heard.finish == "stop":
            tokens, stop = tokens[:-1], "end"  # the end-of-sequence token is no part of the answer
        first = (heard.first_at or heard.started_at) - heard.started_at
        return Answer(
            text=self._info.tokenizer.decode(tokens) if heard.has_ids else text,
            stop=stop,
            prompt_tokens=prompt.token_count,
            output_tokens=len(tokens) + (stop == "end"),
            cached_tokens=heard.cached,
            logprob=logprob,
            # with others in flight the wait for the first token is theirs too
            timing=Timing(
                prefill_s=first if self._options.concurrency == 1 else 0.0,
                first_token_s=first,
                total_s=(heard.done_at or heard.started_at) - heard.started_at,
            ),
            memory=self._memory(prompt, heard.generated, watch),
        )

    def _memory(self, prompt: Prompt, generated: int, watch: Watch) -> KVUsage:
        shape, kv, cache = self._info.shape, self._request.kv, self._facts.cache
        stored = stored_tokens(prompt.token_count, generated)
        page = cache.page_bytes(shape, kv) if cache is not None else None
        held = None
        if cache is not None and page is not None and watch.peak_usage and not watch.preempted:
            held = cache.held_bytes(watch.peak_usage, page)
        return replace(
            usage_by_formula(shape, stored_as(kv, shape), stored),
            allocated_bytes=held,
            pool_bytes=cache.pool_bytes(shape, kv) if cache is not None else None,
            source="sampled_metrics" if cache is not None else "not_observable",
        )

    async def _gold_logprob(self, prompt: Prompt, heard: _Heard) -> float | None:
        """Log-probability of the expected answer, teacher-forced; None when the server cannot say.

        As far as the reply follows the expected answer, and for the token where it leaves it, the greedy request has
        said it already. Each token after that is asked for on its own with all tokens before it as the prompt: such a
        request reads the prefix cache, which vLLM does not do where it is asked for ``prompt_logprobs``.
        """
        gold, total, known = prompt.gold, 0.0, 0
        for position, token in enumerate(gold[: min(len(heard.gold_logprobs), len(heard.tokens))]):
            value = heard.gold_logprobs[position].get(token)
            if value is None:
                return None
            total, known = total + value, position + 1
            if heard.tokens[position] != token:
                break
        rest = range(known, len(gold))
        if not rest:
            return total
        if prompt.token_count + len(gold) > (self._facts.max_model_len or 1 << 60):
            return None
        prompts = [[*prompt.ids(), *gold[:position]] for position in rest]
        body = self._common() | _logprobs_of(gold) | {"prompt": prompts, "max_tokens": 1}
        reply = await self._client.post(_PATH, body)
        with reading(_PATH):
            choices = sorted(reply.get("choices") or (), key=lambda choice: int(choice["index"]))
            rows = [row for choice in choices for row in _read_logprobs(choice)[:1]]
        values = [row.get(gold[position]) for position, row in zip(rest, rows, strict=False)]
        known_values = [value for value in values if value is not None]
        return total + sum(known_values) if len(known_values) == len(rest) == len(rows) else None

    async def _failure(self, prompt: Prompt, error: CellError) -> Failure:
        """The row's fault; when the server itself is gone, all that follows fails at once."""
        if error.kind in _HEALTH_MATTERS and not await self._is_alive():
            self.gone = self.gone or Failure("server_gone", self._obituary(error))
            return self.gone
        message = str(error)
        if error.kind == "context_too_long":
            message = (
                f"{prompt.token_count:,} prompt tokens and an answer of {prompt.answer_budget} do not fit into the "
                f"{self._facts.max_model_len or 'unknown number of'} tokens that the server takes: {message}"
            )
        return Failure(error.kind, message, error.retryable)

    async def _is_alive(self) -> bool:
        if self._process is not None and not self._process.is_running:
            return False
        return await self._client.is_healthy()

    def _obituary(self, error: CellError) -> str:
        if self._process is None:
            return f"the server at {self._client.base_url} no longer answers ({error})"
        last = self._process.last_lines(1)
        end = f" ends with: {last[0]}" if last else " is empty"
        return f"the vLLM server ended during the run ({error}); its log {str(self._process.log)!r}{end}"


def _logprobs_of(tokens: Sequence[int]) -> dict[str, Any]:
    """Ask for the log-probabilities of just these tokens; their ids stand for them in the reply."""
    return {"logprobs": 0, "logprob_token_ids": sorted(set(tokens)), "return_tokens_as_token_ids": True}


def _read_logprobs(choice: Mapping[str, Any]) -> list[dict[int, float | None]]:
    """One table of token id to log-probability per generated token."""
    tables = (choice.get("logprobs") or {}).get("top_logprobs") or ()
    return [
        {int(name.removeprefix("token_id:")): logprob_of(value) for name, value in table.items()} for table in tables
    ]
