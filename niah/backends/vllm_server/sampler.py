"""A sampler of ``/metrics`` while requests are in flight: the KV pool's peak for each request that ran alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from niah.backends.vllm_server.metrics import Reading, parse_samples, read_load
from niah.errors import BackendUnavailable, CellError


@dataclass(eq=False)
class Watch:
    """One request in flight.

    Attributes:
        peak_usage: highest share (0–1) of the pool's blocks that was read while the server ran this request and no
            other; None when no reading says that.
    """

    peak_usage: float | None = None
    preempted: bool = False


class Sampler:
    """A background task that reads every ``every_s`` seconds, and at once when poked.

    vLLM publishes one usage for the whole pool, so a reading belongs to a request only when nothing else ran. Blocks
    that the prefix cache keeps after their request count as free and do not disturb that.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[str]],
        every_s: float,
        on_sample: Callable[[Mapping[str, float]], None],
        read_card: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        self._read, self._every_s, self._on_sample, self._read_card = read, every_s, on_sample, read_card
        self._active: list[Watch] = []
        self._busy, self._poked = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._first_preemptions: float | None = None
        self._last_preemptions: float | None = None

    async def start(self) -> None:
        """One reading to compare later ones with, then the task.

        Raises:
            CellError: the server does not publish metrics.
        """
        self._keep(read_load(parse_samples(await self._read())), alone=None)
        self._task = asyncio.create_task(self._loop())

    async def close(self) -> None:
        """End the task; raises what it ended with, for instance a disk that is full."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            if not task.cancelled():
                raise

    @property
    def preemptions(self) -> int | None:
        """Requests that were put back for want of blocks since the start; None when not published."""
        if self._first_preemptions is None or self._last_preemptions is None:
            return None
        return int(self._last_preemptions - self._first_preemptions)

    def poke(self) -> None:
        """Read now: a request has just reached a state that a short one would leave before the next reading."""
        self._poked.set()

    @contextmanager
    def watch(self) -> Iterator[Watch]:
        """A request's time in flight."""
        watch = Watch()
        self._active.append(watch)
        self._busy.set()
        try:
            yield watch
        finally:
            self._active.remove(watch)
            if not self._active:
                self._busy.clear()

    async def _loop(self) -> None:
        while True:
            await self._busy.wait()
            self._poked.clear()
            await self._take()
            try:
                await asyncio.wait_for(self._poked.wait(), self._every_s)
            except TimeoutError:
                continue

    async def _take(self) -> None:
        before = tuple(self._active)
        try:
            reading = read_load(parse_samples(await self._read()))
        except (CellError, BackendUnavailable):
            return  # the requests themselves will say that the server is gone
        # the reading was made somewhere between the two
        alone = before[0] if len(before) == 1 and before == tuple(self._active) else None
        self._keep(reading, alone)
        if reading.values:
            self._on_sample({**reading.values, **self._read_card()})

    def _keep(self, reading: Reading, alone: Watch | None) -> None:
        preemptions = reading.get("num_preemptions")
        if preemptions is not None:
            if self._first_preemptions is None:
                self._first_preemptions = preemptions
            if self._last_preemptions is not None and preemptions > self._last_preemptions:
                for watch in self._active:
                    watch.preempted = True
            self._last_preemptions = preemptions
        usage = reading.get("kv_cache_usage_perc")
        # other users of the same server show as more than one request running
        if alone is None or usage is None or reading.engines != 1 or reading.get("num_requests_running") != 1:
            return
        alone.peak_usage = max(alone.peak_usage or 0.0, usage)
