"""Batches of OpenAI's API: a file of requests, a job that names it, and files of results and of errors.

Limits by https://platform.openai.com/docs/guides/batch: 50,000 requests and 200 MB a file.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from niah.backends.openai.adapter import OpenAIAdapter
from niah.engines.base import BatchState
from niah.engines.hosted.adapter import Call, Completion
from niah.engines.hosted.batch import newer_than
from niah.engines.hosted.sdk import sdk_faults
from niah.engines.http.faults import ApiFault, document, fault_of_status
from niah.engines.http.values import count_or_none, part

# our mark on a batch, by which it is found again when the reply to its submission is lost
_MARK = "niah"
_OVER = ("completed", "failed", "expired", "cancelled")
_WINDOW = "24h"


class OpenAIBatches:
    """Batches of the endpoint that a adapter asks."""

    most_requests = 50_000
    most_bytes = 190_000_000
    is_marked = True

    def __init__(self, adapter: OpenAIAdapter) -> None:
        self._adapter = adapter

    def line(self, custom_id: str, call: Call) -> bytes:
        """A line of the input file."""
        body, extra = self._adapter.body(call)
        request = {"custom_id": custom_id, "method": "POST", "url": self._adapter.endpoint, "body": {**body, **extra}}
        return json.dumps(request).encode()

    async def upload(self, label: str, file: Path) -> str:
        """The file of requests; returns its id."""
        name = (f"{label}.jsonl", await asyncio.to_thread(file.read_bytes), "application/jsonl")
        with self._faults():
            raw = await self._adapter.client.files.with_raw_response.create(file=name, purpose="batch")
            return _id_of(document(raw.content, "files"), "files")

    async def submit(self, label: str, file: Path, uploaded: str) -> str:  # noqa: ARG002  it is uploaded
        """Start the batch."""
        with self._faults():
            raw = await self._adapter.client.batches.with_raw_response.create(
                input_file_id=uploaded,
                endpoint=self._adapter.endpoint,
                completion_window=_WINDOW,
                metadata={_MARK: label},
            )
            return _id_of(document(raw.content, "batches"), "batches")

    async def find(self, label: str, requests: int, since: float) -> list[str]:  # noqa: ARG002  the mark is enough
        """Those with our mark, among all that are not older."""

        async def page_after(batch_id: str | None) -> dict[str, Any]:
            after = {} if batch_id is None else {"after": batch_id}
            with self._faults():
                raw = await self._adapter.client.batches.with_raw_response.list(limit=100, **after)
                return document(raw.content, "batches")

        batches = await newer_than(since, page_after, lambda batch: count_or_none(batch.get("created_at")) or 0)
        return [_id_of(batch, "batches") for batch in batches if part(batch, "metadata", _MARK) == label]

    async def state(self, batch_id: str) -> BatchState:
        """How far it is. One that was refused as a whole has errors and no results."""
        batch = await self._retrieve(batch_id)
        word = str(batch.get("status"))
        counts = batch.get("request_counts")
        done = (count_or_none(part(counts, "completed")) or 0) + (count_or_none(part(counts, "failed")) or 0)
        fault = _errors(batch) or f"the batch ended as {word!r}"
        has_results = bool(batch.get("output_file_id") or batch.get("error_file_id"))
        # files may come after the status, where there is something to be put into them
        is_over = word in _OVER and (has_results or not done)
        total = count_or_none(part(counts, "total")) or 0
        return BatchState(word, done, total, is_over, "" if has_results or not is_over else fault)

    async def results(self, batch_id: str) -> list[bytes]:
        """The file of replies, and that of requests which have none."""
        batch = await self._retrieve(batch_id)
        found = []
        for name in ("output_file_id", "error_file_id"):
            if batch.get(name):
                with self._faults():
                    found.append(bytes((await self._adapter.client.files.content(str(batch[name]))).content))
        return found

    def completion(self, result: Mapping[str, Any]) -> Completion:
        """A reply, or the fault of a line without one."""
        status, body = count_or_none(part(result, "response", "status_code")), part(result, "response", "body")
        error = result.get("error")
        if status == 200 and isinstance(body, Mapping) and not error:
            return self._adapter.read(body, json.dumps(body))
        if status is not None and status != 200:
            raise fault_of_status(status, json.dumps(body), {}, "the batch")
        code, message = part(error, "code") or "no_reply", part(error, "message") or "the batch has no reply to it"
        raise ApiFault(str(code), str(message), retryable=True)

    async def _retrieve(self, batch_id: str) -> dict[str, Any]:
        with self._faults():
            raw = await self._adapter.client.batches.with_raw_response.retrieve(batch_id)
            return document(raw.content, "batches")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        import openai

        with sdk_faults(self._adapter.service, openai):
            yield


def _id_of(found: Mapping[str, Any], what: str) -> str:
    value = found.get("id")
    if not isinstance(value, str) or not value:
        raise ApiFault("bad_reply", f"the reply to {what} has no id, as OpenAI's batch API gives one", retryable=True)
    return value


def _errors(batch: Mapping[str, Any]) -> str:
    listed = part(batch, "errors", "data")
    messages = [str(part(error, "message") or part(error, "code")) for error in listed or () if error]
    return "; ".join(dict.fromkeys(messages))
