"""Requests of a llama.cpp server by token ids, what its replies mean, and the KV bytes that its log reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from niah.backends.llamacpp.log import EngineReport
from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.http.faults import reading
from niah.engines.http.values import count_at, logprob_of, number_at, text_at, token_ids
from niah.engines.memory import usage_by_formula
from niah.engines.server.http import HttpClient
from niah.engines.server.token_session import StreamDelta, StreamState, TokenServer
from niah.kv.memory.totals import stored_tokens
from niah.types import KVUsage, Prompt

if TYPE_CHECKING:
    from niah.backends.llamacpp.options import LlamaCppOptions

# a bias no logit can outweigh: the token is then chosen, and its log-probability is still that of the plain logits
_FORCED = 1e9


class LlamaCppTokenServer(TokenServer[None]):
    """Prompts are asked one after the other in one slot, whose cache keeps what the next one shares with the last."""

    name = "llama.cpp"
    path = "/completion"
    decodes = False
    reads_to_end = False

    def __init__(
        self,
        options: LlamaCppOptions,
        info: ModelInfo,
        request: SessionRequest,
        client: HttpClient,
        report: EngineReport,
        facts: Mapping[str, Any],
    ) -> None:
        super().__init__(client)
        self._options, self._info, self._request = options, info, request
        self._report, self._facts = report, facts
        self.scores = options.logprobs
        self.max_tokens = max((part.cells for part in report.parts), default=None)

    def effective(self) -> dict[str, Any]:
        """As the engine reports them; see ``Session.effective``."""
        return {
            **self._facts,
            **self._report.effective(),
            "threads": self._options.thread_count(),
            "swa_full": self._options.swa_full,
            "prefix_reuse": self._request.reuse,
            # llama.cpp's attention reads what the cache stores, also for the chunk that is being processed
            "prefill_reads": "quantised",
        }

    def in_flight(self) -> AbstractContextManager[None]:
        """Nothing is measured meanwhile: the log has the sizes of the cache."""
        return nullcontext()

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """See ``TokenServer``."""
        return self._request_of(prompt.ids(), prompt.answer_budget) | {"stream": True, "timings_per_token": True}

    def _request_of(self, ids: Sequence[int], tokens: int) -> dict[str, Any]:
        return {
            "prompt": list(ids),
            "n_predict": tokens,
            "temperature": 0.0,
            "n_probs": 1,
            "return_tokens": True,
            "cache_prompt": self._request.reuse,
            "id_slot": 0,
        }

    def is_last(self, event: Mapping[str, Any]) -> bool:
        """See ``TokenServer``."""
        return bool(event.get("stop"))

    def deltas(self, event: Mapping[str, Any]) -> Iterator[StreamDelta]:
        """See ``TokenServer``."""
        timings, finish = event.get("timings") or {}, ""
        if event.get("stop"):
            finish = "end" if event.get("stop_type") == "eos" else "length"
        steps = () if finish else event.get("completion_probabilities") or ()
        ids = [token for step in steps for token in token_ids([step["id"]])]
        yield StreamDelta(
            text=text_at(event, "content"),
            token_ids=ids,
            logprobs=[{token: logprob_of(step.get("logprob"))} for token, step in zip(ids, steps, strict=True)],
            finish=finish,
            prompt_tokens=count_at(event, "tokens_evaluated", None),
            output_tokens=count_at(event, "tokens_predicted", None),
            cached_tokens=count_at(timings, "cache_n", None),
            prefill_s=number_at(timings, "prompt_ms", 0.0) / 1e3 if timings else None,
        )

    def output_tokens(self, state: StreamState) -> int:
        """As the engine counts them, without the end of the sequence."""
        generated = state.output_tokens or 0
        return max(0, generated - 1) if state.stop == "end" else generated

    async def score(self, prompt: Prompt, positions: range) -> Sequence[float | None]:
        """Each token forced by a bias in a request of one step, which reads the cached prompt.

        The server reports log-probabilities of the logits as the model gave them, before any bias.
        """
        values: list[float | None] = []
        for position in positions:
            token = prompt.gold[position]
            ids = [*prompt.ids(), *prompt.gold[:position]]
            reply = await self.client.post(self.path, self._request_of(ids, 1) | {"logit_bias": [[token, _FORCED]]})
            with reading(self.path):
                steps: list[Any] = list(reply.get("completion_probabilities") or ())
                value = logprob_of(steps[0].get("logprob")) if len(steps) == 1 else None
                if value is None or steps[0].get("id") != token:
                    return values
            values.append(value)
        return values

    def memory(self, prompt: Prompt, generated: int, watch: None) -> KVUsage:  # noqa: ARG002
        """See ``TokenServer``."""
        report, stored = self._report, stored_tokens(prompt.token_count, generated)
        logical = report.logical_bytes(stored)
        return replace(
            usage_by_formula(self._info.shape, self._request.kv, stored),
            logical_bytes=logical,
            allocated_bytes=report.held_bytes(stored),
            pool_bytes=report.pool_bytes,
            source="reported" if logical is not None else "not_observable",
        )
