"""Batches of Anthropic's API: all requests in one body, results as a file of lines.

Limits by https://docs.claude.com/en/docs/build-with-claude/batch-processing: 100,000 requests and 256 MB.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from niah.backends.anthropic.adapter import AnthropicAdapter
from niah.engines.base import BatchState
from niah.engines.hosted.adapter import Call, Completion
from niah.engines.hosted.batch import newer_than
from niah.engines.hosted.sdk import sdk_faults
from niah.engines.http.faults import ApiFault, document, fault_of_status
from niah.engines.http.values import count_or_none, part

# statuses of the errors that a single request may end with, as https://docs.claude.com/en/api/errors lists them
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_COUNTS = ("succeeded", "errored", "canceled", "expired")


class AnthropicBatches:
    """Message batches of the model that a adapter asks."""

    most_requests = 100_000
    # the whole body is put together in memory, several times over
    most_bytes = 100_000_000
    is_marked = False

    def __init__(self, adapter: AnthropicAdapter) -> None:
        self._adapter = adapter

    def line(self, custom_id: str, call: Call) -> bytes:
        """One element of the list of requests."""
        body, extra = self._adapter.body(call)
        return json.dumps({"custom_id": custom_id, "params": {**body, **extra}}).encode()

    async def upload(self, label: str, file: Path) -> str:  # noqa: ARG002  there is nothing to upload
        """Nothing: the requests are in the body."""
        return ""

    async def submit(self, label: str, file: Path, uploaded: str) -> str:  # noqa: ARG002  the custom ids hold the label
        """Hand in all lines of the file in one body."""
        requests = [json.loads(line) for line in (await asyncio.to_thread(file.read_bytes)).splitlines()]
        with self._faults():
            raw = await self._adapter.client.messages.batches.with_raw_response.create(requests=requests)
            return _id_of(document(await raw.read(), "message batches"))

    async def find(self, label: str, requests: int, since: float) -> list[str]:  # noqa: ARG002
        """All with so many requests that are not older, those made nearest to ``since`` first.

        A batch shows nothing of its content until it is over: only its results tell whether it is ours.
        """

        async def page_after(batch_id: str | None) -> dict[str, Any]:
            after = {} if batch_id is None else {"after_id": batch_id}
            with self._faults():
                raw = await self._adapter.client.messages.batches.with_raw_response.list(limit=100, **after)
                return document(await raw.read(), "message batches")

        batches = await newer_than(since, page_after, _created)
        alike = [batch for batch in batches if sum(_counts(batch)) == requests]
        return [_id_of(batch) for batch in sorted(alike, key=lambda batch: abs(_created(batch) - since))]

    async def state(self, batch_id: str) -> BatchState:
        """How far it is; single requests are only counted when all have finished."""
        batch = await self._retrieve(batch_id)
        word = str(batch.get("processing_status"))
        _, *through = _counts(batch)
        is_over = word == "ended"
        fault = "its results are gone (they are kept for 29 days)" if is_over and not batch.get("results_url") else ""
        return BatchState(word, sum(through), sum(_counts(batch)), is_over, fault)

    async def results(self, batch_id: str) -> list[bytes]:
        """All lines of the results."""
        # by its known path: the key goes with the request, so no reply may say where it is sent
        path = f"/v1/messages/batches/{quote(batch_id, safe='')}/results"
        with self._faults():
            return [bytes((await self._adapter.client.get(path, cast_to=httpx2.Response)).content)]

    def completion(self, result: Mapping[str, Any]) -> Completion:
        """A message, or the fault of a request without one."""
        kind, message = part(result, "result", "type"), part(result, "result", "message")
        if kind == "succeeded" and isinstance(message, Mapping):
            return self._adapter.read(message, json.dumps(message))
        if kind == "errored":
            error = part(result, "result", "error")
            status = _STATUSES.get(str(part(error, "error", "type") or part(error, "type")), 500)
            raise fault_of_status(status, json.dumps(error), {}, "the batch")
        raise ApiFault(str(kind or "no_reply"), f"the batch ended the request as {kind!r}", retryable=True)

    async def _retrieve(self, batch_id: str) -> dict[str, Any]:
        with self._faults():
            raw = await self._adapter.client.messages.batches.with_raw_response.retrieve(batch_id)
            return document(await raw.read(), "message batches")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        import anthropic

        with sdk_faults(self._adapter.service, anthropic):
            yield


def _id_of(found: Mapping[str, Any]) -> str:
    value = found.get("id")
    if not isinstance(value, str) or not value:
        raise ApiFault("bad_reply", "the reply has no id, as Anthropic's batch API gives one", retryable=True)
    return value


def _counts(batch: Any) -> tuple[int, ...]:
    counts = part(batch, "request_counts")
    return tuple(count_or_none(part(counts, name)) or 0 for name in ("processing", *_COUNTS))


def _created(batch: Any) -> float:
    """Unix seconds; 0 where the service does not say."""
    try:
        return datetime.fromisoformat(str(part(batch, "created_at"))).timestamp()
    except ValueError:
        return 0.0
