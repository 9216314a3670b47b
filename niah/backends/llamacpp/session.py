"""One llama.cpp server under one KV setting: token ids in, answers with their cached tokens and bytes out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from niah.backends.llamacpp.log import EngineReport
from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.http.faults import reading
from niah.engines.http.values import count_at, logprob_of, number_at, text_at, token_ids
from niah.engines.memory import usage_by_formula
from niah.engines.server.http import HttpClient
from niah.engines.server.process import ServerProcess
from niah.errors import CellError, boundary
from niah.kv.memory.totals import stored_tokens
from niah.types import Answer, Failure, KVUsage, Prompt, Reply, Timing

if TYPE_CHECKING:
    from niah.backends.llamacpp.options import LlamaCppOptions

_PATH = "/completion"
# a bias no logit can outweigh: the token is then chosen, and its log-probability is still that of the plain logits
_FORCED = 1e9
_HEALTH_MATTERS = ("connection_lost", "server_error", "timeout")


@dataclass
class _Heard:
    """A reply as far as it has come. ``tokens`` and ``logprobs`` run side by side."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float | None] = field(default_factory=list)
    generated: int = 0
    text: str = ""
    stop: str = ""
    counted: int | None = None
    timings: Mapping[str, Any] = field(default_factory=dict)
    started_at: float = field(default_factory=time.perf_counter)
    first_at: float | None = None
    done_at: float | None = None


class LlamaCppSession:
    """Prompts are asked one after the other in one slot, whose cache keeps what the next one shares with the last."""

    max_in_flight = 1

    def __init__(
        self,
        options: LlamaCppOptions,
        info: ModelInfo,
        request: SessionRequest,
        client: HttpClient,
        process: ServerProcess,
        report: EngineReport,
        facts: Mapping[str, Any],
    ) -> None:
        self._options, self._info, self._request = options, info, request
        self._client, self._process, self._report, self._facts = client, process, report, facts
        self.gone: Failure | None = None

    def effective(self) -> dict[str, Any]:
        """What the engine says of itself."""
        return {
            **self._facts,
            **self._report.effective(),
            "threads": self._options.thread_count(),
            "swa_full": self._options.swa_full,
            "prefix_reuse": self._request.reuse,
            # llama.cpp's attention reads what the cache stores, also for the chunk that is being processed
            "prefill_reads": "quantised",
        }

    async def answer(self, group: Sequence[Prompt]) -> list[Reply]:
        replies = [await self._one(prompt) for prompt in group]
        self._request.on_tokens(len(group[0].context))
        return replies

    async def _one(self, prompt: Prompt) -> Reply:
        if self.gone is not None:
            return self.gone
        try:
            with boundary("engine", "llama.cpp"):
                heard = await self._ask(prompt)
                logprob = await self._gold_logprob(prompt, heard) if self._options.logprobs else None
                return self._reply(prompt, heard, logprob)
        except CellError as err:
            return await self._failure(prompt, err)

    def _body(self, ids: Sequence[int], tokens: int) -> dict[str, Any]:
        return {
            "prompt": list(ids),
            "n_predict": tokens,
            "temperature": 0.0,
            "n_probs": 1,
            "return_tokens": True,
            "cache_prompt": self._request.reuse,
            "id_slot": 0,
        }

    async def _ask(self, prompt: Prompt) -> _Heard:
        """The greedy request; it is cut off when what comes next could not change the judgement."""
        heard = _Heard()
        body = self._body(prompt.ids(), prompt.answer_budget) | {"stream": True, "timings_per_token": True}
        async with aclosing(self._client.events(_PATH, body, is_last=lambda event: bool(event.get("stop")))) as events:
            async for event in events:
                with reading(_PATH):
                    self._take(heard, event)
                if not heard.stop and self._request.is_complete(heard.text, prompt.case):
                    heard.stop = "stop"
                if heard.stop:
                    break
        heard.done_at = time.perf_counter()
        if not heard.stop or heard.counted is None:
            raise CellError("bad_reply", "the reply ended without saying why")
        if heard.counted != prompt.token_count:
            reason = f"{prompt.token_count:,} prompt tokens were sent and the server counted {heard.counted:,}"
            raise CellError("prompt_changed", reason)
        return heard

    def _take(self, heard: _Heard, event: Mapping[str, Any]) -> None:
        if heard.first_at is None:
            heard.first_at = time.perf_counter()
        heard.text += text_at(event, "content")
        heard.generated = count_at(event, "tokens_predicted", heard.generated)
        heard.counted = count_at(event, "tokens_evaluated", heard.counted)
        heard.timings = event.get("timings") or heard.timings
        for entry in () if event.get("stop") else event.get("completion_probabilities") or ():
            heard.tokens += token_ids([entry["id"]])
            heard.logprobs.append(logprob_of(entry.get("logprob")))
        if event.get("stop"):
            heard.stop = "end" if event.get("stop_type") == "eos" else "length"

    def _reply(self, prompt: Prompt, heard: _Heard, logprob: float | None) -> Answer:
        with reading(_PATH):
            cached, prefill_s = count_at(heard.timings, "cache_n", 0), number_at(heard.timings, "prompt_ms", 0.0) / 1e3
        # the end-of-sequence token is counted by the engine and is no part of the answer
        output = max(0, heard.generated - 1) if heard.stop == "end" else heard.generated
        return Answer(
            text=heard.text,
            stop=heard.stop,
            prompt_tokens=heard.counted or 0,
            output_tokens=output,
            cached_tokens=cached,
            logprob=logprob,
            timing=Timing(
                prefill_s=prefill_s,
                first_token_s=(heard.first_at or heard.started_at) - heard.started_at,
                total_s=(heard.done_at or heard.started_at) - heard.started_at,
            ),
            memory=self._memory(prompt, heard.generated),
        )

    def _memory(self, prompt: Prompt, generated: int) -> KVUsage:
        report, stored = self._report, stored_tokens(prompt.token_count, generated)
        logical = report.logical_bytes(stored)
        return replace(
            usage_by_formula(self._info.shape, self._request.kv, stored),
            logical_bytes=logical,
            allocated_bytes=report.held_bytes(stored),
            pool_bytes=report.pool_bytes,
            source="reported" if logical is not None else "not_observable",
        )

    async def _gold_logprob(self, prompt: Prompt, heard: _Heard) -> float | None:
        """Log-probability of the expected answer, teacher-forced; None when the server does not give one.

        As far as the reply follows the expected answer its own steps have said it. Each token after that is forced by a
        bias in a request of one step, which reads the cached prompt; the server reports log-probabilities of the
        logits as the model gave them, before any bias.
        """
        total, known = 0.0, 0
        for token, given, value in zip(prompt.gold, heard.tokens, heard.logprobs, strict=False):
            if token != given or value is None:
                break
            total, known = total + value, known + 1
        for position in range(known, len(prompt.gold)):
            token = prompt.gold[position]
            body = self._body([*prompt.ids(), *prompt.gold[:position]], 1) | {"logit_bias": [[token, _FORCED]]}
            reply = await self._client.post(_PATH, body)
            with reading(_PATH):
                steps: list[Any] = list(reply.get("completion_probabilities") or ())
                value = logprob_of(steps[0].get("logprob")) if len(steps) == 1 else None
                if value is None or steps[0].get("id") != token:
                    return None
                total += value
        return total

    async def _failure(self, prompt: Prompt, error: CellError) -> Failure:
        """The row's fault; when the server itself is gone, all that follows fails at once."""
        if error.kind in _HEALTH_MATTERS and not (self._process.is_running and await self._client.is_healthy()):
            last = self._process.last_lines(1)
            end = f" ends with: {last[0]}" if last else " is empty"
            said = f"the llama.cpp server ended during the run ({error}); its log {str(self._process.log)!r}{end}"
            self.gone = self.gone or Failure("server_gone", said)
            return self.gone
        message = str(error)
        if error.kind == "context_too_long":
            message = f"{prompt.token_count:,} prompt tokens and an answer of {prompt.answer_budget}: {message}"
        return Failure(error.kind, message, error.retryable)
