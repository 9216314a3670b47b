"""Requests of a vLLM server by token ids, what its replies mean, and the KV memory that its metrics show."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from niah.backends.vllm_server.sampler import Sampler, Watch
from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.gpu import CardReader
from niah.engines.http.faults import reading
from niah.engines.http.values import count_at, logprob_of, shown, text_at, token_ids
from niah.engines.memory import usage_by_formula
from niah.engines.server.http import HttpClient
from niah.engines.server.token_session import StreamDelta, TokenServer
from niah.engines.vllm.arguments import stored_as
from niah.errors import CellError
from niah.kv.memory.totals import stored_tokens
from niah.types import KVUsage, Prompt

if TYPE_CHECKING:
    from niah.backends.vllm_server.facts import Facts
    from niah.backends.vllm_server.options import VllmServerOptions

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
_STOPS = {"stop": "end", "length": "length"}


class VllmTokenServer(TokenServer[Watch]):
    """One server under one KV setting.

    A reply's last tokens may not be needed, but only a reply read to its end has counts.

    Args:
        is_own: whether the server was started here: only then is it known to run on this machine's card.
    """

    name = "vLLM"
    path = "/v1/completions"

    def __init__(
        self,
        options: VllmServerOptions,
        info: ModelInfo,
        request: SessionRequest,
        client: HttpClient,
        facts: Facts,
        *,
        is_own: bool,
    ) -> None:
        super().__init__(client)
        self._info, self._request, self._facts = info, request, facts
        read_card = CardReader().read if is_own else dict
        metrics = partial(client.text, "/metrics")
        self._sampler = Sampler(metrics, options.sample_every_s, request.on_sample, read_card)
        self.scores = options.logprobs and request.reuse
        self.max_in_flight = options.concurrency
        self.max_tokens = facts.max_model_len

    async def start(self) -> None:
        """Begin to read the metrics, where the server publishes them."""
        if self._facts.cache is not None:
            await self._sampler.start()

    async def close(self) -> None:
        """End reading the metrics."""
        await self._sampler.close()

    def effective(self) -> dict[str, Any]:
        """As the server reports them; what it does not publish is left out. See ``Session.effective``."""
        values = self._facts.effective(self._request.kv, self._info.shape)
        if self._sampler.preemptions is not None:
            values["preemptions"] = self._sampler.preemptions
        return values

    def in_flight(self) -> AbstractContextManager[Watch]:
        """See ``TokenServer``."""
        return self._sampler.watch()

    def first_token(self) -> None:
        """Read the metrics now: a short answer is soon over."""
        self._sampler.poke()

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """See ``TokenServer``."""
        body = self._common() | {
            "prompt": prompt.ids(),
            "max_tokens": prompt.answer_budget,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_token_ids": True,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
        }
        return body | (_logprobs_of(prompt.gold) if self.scores else {})

    def _common(self) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._facts.model, **_PLAIN}
        if not self._request.reuse:
            # blocks are found by salt and tokens: a new salt finds none, also on a server that caches prefixes
            body["cache_salt"] = uuid.uuid4().hex
        return body

    def deltas(self, event: Mapping[str, Any]) -> Iterator[StreamDelta]:
        """See ``TokenServer``."""
        for choice in event.get("choices") or ():
            finish, new = choice.get("finish_reason"), choice.get("token_ids")
            if finish and finish not in _STOPS:
                raise CellError("bad_reply", f"the reply ended by {shown(finish)}, which is no end that is known")
            yield StreamDelta(
                text=text_at(choice, "text"),
                token_ids=None if new is None else token_ids(new),
                logprobs=_read_logprobs(choice),
                finish=_STOPS[finish] if finish else "",
                prompt_ids=choice.get("prompt_token_ids"),
            )
        usage = event.get("usage")
        if usage:
            yield StreamDelta(
                prompt_tokens=count_at(usage, "prompt_tokens", None),
                output_tokens=count_at(usage, "completion_tokens", None),
                cached_tokens=count_at(usage.get("prompt_tokens_details") or {}, "cached_tokens", None),
            )

    async def score(self, prompt: Prompt, positions: range) -> Sequence[float | None]:
        """Each token as the one next token of a prompt of its own, all in one batch.

        Such a request reads the prefix cache, which vLLM does not do where it is asked for ``prompt_logprobs``.
        """
        gold = prompt.gold
        if self.max_tokens is not None and prompt.token_count + len(gold) > self.max_tokens:
            return ()
        prompts = [[*prompt.ids(), *gold[:position]] for position in positions]
        body = self._common() | _logprobs_of(gold) | {"prompt": prompts, "max_tokens": 1}
        reply = await self.client.post(self.path, body)
        with reading(self.path):
            choices = sorted(reply.get("choices") or (), key=lambda choice: int(choice["index"]))
            rows = [row for choice in choices for row in _read_logprobs(choice)[:1]]
        if len(rows) != len(positions):
            return ()
        return [row.get(gold[position]) for position, row in zip(positions, rows, strict=True)]

    def memory(self, prompt: Prompt, generated: int, watch: Watch) -> KVUsage:
        """See ``TokenServer``."""
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


def _logprobs_of(tokens: Sequence[int]) -> dict[str, Any]:
    """Ask for the log-probabilities of just these tokens; their ids stand for them in the reply."""
    return {"logprobs": 0, "logprob_token_ids": sorted(set(tokens)), "return_tokens_as_token_ids": True}


def _read_logprobs(choice: Mapping[str, Any]) -> list[dict[int, float | None]]:
    """One table of token id to log-probability per generated token."""
    tables = (choice.get("logprobs") or {}).get("top_logprobs") or ()
    return [
        {int(name.removeprefix("token_id:")): logprob_of(value) for name, value in table.items()} for table in tables
    ]
