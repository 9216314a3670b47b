"""Batches of a hosted API: many requests submitted as one file, polled until they have finished, read line by line."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from niah.engines.base import BatchState, ModelInfo
from niah.engines.hosted.adapter import Call, Completion, call_of
from niah.engines.hosted.options import BatchOptions
from niah.engines.hosted.retries import with_retries
from niah.engines.http.faults import ApiFault
from niah.errors import BackendUnavailable, CellError
from niah.types import Prompt, Reply

T = TypeVar("T")
# clocks of two machines may differ by this
_SKEW_S = 3600
# faults of a submission after which the batch is surely not there; after a lost connection, say, it may be
_NOT_ARRIVED = ("rate_limited", "bad_request", "context_too_long", "refused")


class BatchReader(Protocol):
    """The session that judges the results of a batch as it judges single replies."""

    def note_batch(self, batch_id: str) -> None: ...

    def from_batch(self, read: Callable[[], Completion], prompt: Prompt) -> Reply: ...


class BatchAdapter(Protocol):
    """A service's batches as they are used here; every method may raise what ``ApiAdapter.ask`` does.

    Attributes:
        most_requests, most_bytes: that the service takes in one batch, or less.
        is_marked: see ``Batches``.
    """

    most_requests: int
    most_bytes: int
    is_marked: bool

    def line(self, custom_id: str, call: Call) -> bytes: ...

    async def upload(self, label: str, file: Path) -> str:
        """What has to be there before a batch can be handed in; doing it twice harms nothing."""
        ...

    async def submit(self, label: str, file: Path, uploaded: str) -> str: ...

    async def find(self, label: str, requests: int, since: float) -> list[str]: ...

    async def state(self, batch_id: str) -> BatchState: ...

    async def results(self, batch_id: str) -> list[bytes]:
        """Documents of JSON lines, one line a request."""
        ...

    def completion(self, result: Mapping[str, Any]) -> Completion:
        """What a line of the results says; raises what ``ApiAdapter.ask`` would have raised."""
        ...


class ApiBatches:
    """Batches of one session: retries, and replies that are judged as those of single requests are."""

    def __init__(self, options: BatchOptions, info: ModelInfo, adapter: BatchAdapter, session: BatchReader) -> None:
        self._options, self._info, self._adapter, self._session = options, info, adapter, session
        self.most_requests = min(adapter.most_requests, options.batch_requests or adapter.most_requests)
        self.most_bytes = adapter.most_bytes
        self.most_tokens = options.batch_tokens
        self.poll_s, self.settle_s = options.batch_poll_s, options.batch_settle_s
        self.is_marked = adapter.is_marked

    def line(self, custom_id: str, prompt: Prompt) -> bytes:
        """See ``Batches``."""
        # requests of a batch run in any order, so that writes to a prompt cache would mostly cost money and save none
        return self._adapter.line(custom_id, call_of(prompt, self._info.tokenizer, is_cacheable=False))

    async def submit(self, label: str, file: Path) -> str:
        """See ``Batches``."""
        try:
            uploaded = await with_retries(self._options, lambda _: self._adapter.upload(label, file))
            return await with_retries(self._options, lambda _: self._once(label, file, uploaded))
        except (BackendUnavailable, ApiFault) as err:
            raise BackendUnavailable(f"the batch cannot be handed in: {err}") from err

    async def _once(self, label: str, file: Path, uploaded: str) -> str:
        try:
            return await self._adapter.submit(label, file, uploaded)
        except ApiFault as fault:
            if fault.kind in _NOT_ARRIVED:
                raise
            raise CellError("batch_unknown", str(fault)) from fault

    async def find(self, label: str, requests: int, since: float) -> list[str]:
        """See ``Batches``."""
        return await self._with_retries("the batches", lambda: self._adapter.find(label, requests, since))

    async def state(self, batch_id: str) -> BatchState:
        """See ``Batches``."""
        return await self._with_retries(f"batch {batch_id!r}", lambda: self._adapter.state(batch_id))

    async def replies(self, batch_id: str) -> list[tuple[str, Callable[[Prompt], Reply]]]:
        """See ``Batches``."""
        what = f"the results of batch {batch_id!r}"
        documents = await self._with_retries(what, lambda: self._adapter.results(batch_id))
        self._session.note_batch(batch_id)
        results = [_object(line) for document in documents for line in document.splitlines()]
        return [(str(result["custom_id"]), self._reply_to(result)) for result in results if "custom_id" in result]

    def _reply_to(self, result: Mapping[str, Any]) -> Callable[[Prompt], Reply]:
        return partial(self._session.from_batch, partial(self._adapter.completion, result))

    async def _with_retries(self, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            return await with_retries(self._options, lambda _: ask())
        except CellError as err:
            raise BackendUnavailable(f"{what} cannot be looked at; the same command tries again: {err}") from err
        except BackendUnavailable as err:
            raise BackendUnavailable(
                f"{what} cannot be looked at: {err} Where it is gone for good (deleted, or made with another account's "
                "key), remove batches.jsonl from the run folder, and its cells are asked again."
            ) from err


async def newer_than(
    since: float,
    page_after: Callable[[str | None], Awaitable[Mapping[str, Any]]],
    created: Callable[[Mapping[str, Any]], float],
) -> list[Mapping[str, Any]]:
    """Batches of a service's list, which has the newest first, as far back as ``since`` (Unix seconds) may be there.

    Args:
        page_after: a page of the list: its first, or the one behind the batch of that id.
        created: Unix seconds of a batch; 0 where it does not tell.
    """
    found: list[Mapping[str, Any]] = []
    after: str | None = None
    while True:
        page = await page_after(after)
        listed = page.get("data")
        batches = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
        found += [batch for batch in batches if created(batch) >= since - _SKEW_S]
        if not page.get("has_more") or not batches or created(batches[-1]) < since - _SKEW_S:
            return found
        after = str(batches[-1].get("id"))


def _object(line: bytes) -> Mapping[str, Any]:
    """A line as an object; an empty one where the line is broken, and its request then has no reply."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
