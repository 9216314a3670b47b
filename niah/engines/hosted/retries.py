"""Retries of requests to a hosted API: which faults are asked again, how often, and after how long a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from niah.engines.hosted.options import ApiOptions
from niah.engines.http.faults import ApiFault

_WAIT_MAX_S = 60.0

T = TypeVar("T")


def _backoff(error: Exception) -> bool | float:
    if not isinstance(error, ApiFault) or not error.retryable:
        return False
    return True if error.retry_after_s is None else error.retry_after_s


def _policy(options: ApiOptions) -> dict[str, Any]:
    return {
        "on": _backoff,
        "attempts": options.attempts,
        "timeout": options.retry_for_s,
        "wait_initial": options.retry_wait_s,
        "wait_max": max(_WAIT_MAX_S, options.retry_wait_s),
        "wait_jitter": options.retry_wait_s,
    }


async def with_retries(options: ApiOptions, ask: Callable[[int], Awaitable[T]]) -> T:
    """The first good result of ``ask(attempt)``; the last fault when there is none in time."""
    import stamina

    async for attempt in stamina.retry_context(**_policy(options)):
        with attempt:
            return await ask(attempt.num)
    raise AssertionError("unreachable: the last attempt raises")


def with_retries_now(options: ApiOptions, ask: Callable[[], T]) -> T:
    """The same for what is asked before a run: facts and counts."""
    import stamina

    for attempt in stamina.retry_context(**_policy(options)):
        with attempt:
            return ask()
    raise AssertionError("unreachable: the last attempt raises")


class SharedPause:
    """A wait that holds for all requests of a session: what one of them is told by Retry-After."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self._over.set()
        self._timer: asyncio.TimerHandle | None = None

    def extend(self, seconds: float) -> None:
        """Hold all requests for so long from now, or for longer where they are held already."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if not self._over.is_set() and self._timer.when() >= loop.time() + seconds:
                return
            self._timer.cancel()
        self._over.clear()
        self._timer = loop.call_later(seconds, self._over.set)

    async def wait(self) -> None:
        """Return when nothing holds requests back."""
        await self._over.wait()
