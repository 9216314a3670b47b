"""What can go wrong behind an API: a kind for each fault, whether it is asked again, and when."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from niah.engines.bounded import UnreadableReply
from niah.engines.hosted.options import ApiOptions
from niah.errors import BackendUnavailable, CellError
from niah.redact import redact

_WAIT_MAX_S = 60.0
# a server that asks for more patience than this gets its request anew in the next run
_RETRY_AFTER_MAX_S = 3600.0
_MESSAGE_CHARACTERS = 400
_TOO_LONG = re.compile(
    r"context[ _](?:length|size|window)|max_model_len|maximum model length|prompt is too long"
    r"|too many (?:input )?tokens|exceed_context|exceeds the (?:available context|maximum number of tokens)"
    r"|input token count.*exceeds|longer than the (?:model|maximum)",
    re.IGNORECASE | re.DOTALL,
)
_NO_CREDIT = re.compile(r"insufficient_quota|billing|credit balance", re.IGNORECASE)
_FILTERED = re.compile(r"content[_ ]?(?:filter|policy|management)|responsible ?ai|safety", re.IGNORECASE)

T = TypeVar("T")


class ApiFault(CellError):
    """One request failed.

    Args:
        retry_after_s: seconds that the server asks to wait.
    """

    def __init__(self, kind: str, message: str, *, retryable: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(kind, redact(message), retryable=retryable)
        self.retry_after_s = retry_after_s


class RefusedByFilter(ApiFault):
    """A filter of the service stopped the prompt: an outcome of its own, neither right nor failed."""

    def __init__(self, message: str) -> None:
        super().__init__("refused", message)


def fault_of_status(status: int, body: str, headers: Mapping[str, str], service: str) -> Exception:
    """The fault that a reply with an error status stands for.

    Returns:
        ``BackendUnavailable`` for what every further request would meet too: a refused key, no credit, an unknown
        model or path. An ``ApiFault`` for the others; 429, 5xx, 408 and 409 are worth asking again.
    """
    said = redact(message_of(body)) or "no reason given"
    if status in (401, 403):
        return BackendUnavailable(
            f"{service} refuses the key ({status}): {said}. Look at the environment variable that holds it, or name "
            "another by --set backend.api_key_env=NAME."
        )
    if status == 402 or (status in (400, 429) and _NO_CREDIT.search(body)):
        return BackendUnavailable(f"{service} wants to be paid first ({status}): {said}")
    if status in (404, 405, 501) or 300 <= status < 400:
        return BackendUnavailable(
            f"{service} does not know what is asked of it ({status}): {said}. Look at --model and backend.base_url, "
            "and whether the server speaks this API."
        )
    if status == 429:
        return ApiFault("rate_limited", f"{service}: {said}", retryable=True, retry_after_s=retry_after_s(headers))
    if status >= 500 or status in (408, 409):
        after = retry_after_s(headers)
        return ApiFault("server_error", f"{service} failed ({status}): {said}", retryable=True, retry_after_s=after)
    if status == 413 or _TOO_LONG.search(body):
        return ApiFault("context_too_long", f"{service} ({status}): {said}")
    if _FILTERED.search(body):
        return RefusedByFilter(f"{service} ({status}): {said}")
    return ApiFault("bad_request", f"{service} refused the request ({status}): {said}")


def message_of(body: str) -> str:
    """The sentence in an error body: ``error.message``, ``message``, ``error``, or the text as it is."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return " ".join(body.split())[:_MESSAGE_CHARACTERS]
    for _ in range(3):
        if isinstance(found, list) and found:
            found = found[0]
        if isinstance(found, dict):
            found = found.get("error") or found.get("message") or found.get("detail") or json.dumps(found)
    return " ".join(str(found).split())[:_MESSAGE_CHARACTERS]


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds by ``retry-after-ms`` or ``Retry-After`` (seconds or a date, RFC 9110); None where there is none."""
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds:
            return _sensible(float(milliseconds) / 1000)
        return _sensible(float(value)) if value else None
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _sensible((aware - datetime.now(UTC)).total_seconds())


def _sensible(seconds: float) -> float | None:
    return min(max(0.0, seconds), _RETRY_AFTER_MAX_S) if math.isfinite(seconds) else None


@contextmanager
def transport_faults(what: str) -> Iterator[None]:
    """Turn what the HTTP library raises, below or beside an SDK, into an ``ApiFault``."""
    import httpx2

    try:
        yield
    except httpx2.TimeoutException as err:
        raise ApiFault("timeout", f"{what} did not answer in time", retryable=True) from err
    except (httpx2.TransportError, httpx2.StreamError) as err:
        raise ApiFault("connection_lost", f"{what}: {str(err) or type(err).__name__}", retryable=True) from err
    except UnreadableReply as err:
        raise ApiFault(err.kind, f"{what}: {err}") from err
    except httpx2.DecodingError as err:
        raise ApiFault("bad_reply", f"the reply of {what} cannot be decoded: {err}", retryable=True) from err


@contextmanager
def reading(what: str) -> Iterator[None]:
    """What a reply holds is none of ours: a value of another type anywhere in it is a fault with a name."""
    try:
        yield
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError) as err:
        raise ApiFault("bad_reply", f"a value in {what} is not what it should be: {err}") from err


def document(text: str | bytes, what: str) -> dict[str, Any]:
    """A JSON object from a reply.

    Raises:
        ApiFault: ``bad_reply``: it is none.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as err:
        shown = text[:80] if isinstance(text, str) else text[:80].decode(errors="replace")
        raise ApiFault("bad_reply", f"the reply of {what} is not JSON: {shown!r}", retryable=True) from err
    if not isinstance(found, dict):
        raise ApiFault("bad_reply", f"the reply of {what} is no JSON object", retryable=True)
    return found


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


async def asked_again(options: ApiOptions, ask: Callable[[int], Awaitable[T]]) -> T:
    """The first good result of ``ask(attempt)``; the last fault when there is none in time."""
    import stamina

    async for attempt in stamina.retry_context(**_policy(options)):
        with attempt:
            return await ask(attempt.num)
    raise AssertionError("unreachable: the last attempt raises")


def asked_again_now(options: ApiOptions, ask: Callable[[], T]) -> T:
    """The same for what is asked before a run: facts and counts."""
    import stamina

    for attempt in stamina.retry_context(**_policy(options)):
        with attempt:
            return ask()
    raise AssertionError("unreachable: the last attempt raises")
