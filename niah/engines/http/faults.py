"""Faults of HTTP requests to a server: one kind for each status and each broken connection, and whether to ask again.

Hosted APIs, servers that run already and servers that are started here are all judged by this one mapping.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from niah.engines.http.bounded import UnreadableReply
from niah.engines.http.client import http_library
from niah.engines.http.values import part
from niah.errors import BackendUnavailable, CellError
from niah.redact import redact

# a longer wait than this is not waited for: the request is sent again by the next run
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
_KEY_HINT = "Look at the environment variable that holds it, or name another by --set backend.api_key_env=NAME."


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


def fault_of_status(
    status: int, body: str, headers: Mapping[str, str], service: str, key_hint: str = _KEY_HINT
) -> CellError | BackendUnavailable:
    """The fault that a reply with an error status stands for.

    Args:
        service: whom was asked, as it stands in a sentence: ``the server at http://127.0.0.1:8000``.
        key_hint: what to do where the key is refused.

    Returns:
        ``BackendUnavailable`` for what every further request would meet too: a refused key, no credit, an unknown
        model or path. An ``ApiFault`` for the others; 429, 5xx, 408 and 409 are worth asking again.
    """
    said = redact(message_of(body)) or "no reason given"
    if status in (401, 403):
        return BackendUnavailable(f"{service} refuses the key ({status}): {said}. {key_hint}")
    if status == 402 or (status in (400, 429) and _NO_CREDIT.search(body)):
        return BackendUnavailable(f"{service} reports that the account has no credit left ({status}): {said}")
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
    http = http_library()
    try:
        yield
    except http.TimeoutException as err:
        raise ApiFault("timeout", f"{what} did not answer in time", retryable=True) from err
    except (http.TransportError, http.StreamError) as err:
        raise ApiFault("connection_lost", f"{what}: {str(err) or type(err).__name__}", retryable=True) from err
    except UnreadableReply as err:
        raise ApiFault(err.kind, f"{what}: {err}") from err
    except http.DecodingError as err:
        raise ApiFault("bad_reply", f"the reply of {what} cannot be decoded: {err}", retryable=True) from err


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Reading a reply: a value of another kind than it should be, anywhere in it, is an ``ApiFault``."""
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
        start = text[:80] if isinstance(text, str) else text[:80].decode(errors="replace")
        raise ApiFault("bad_reply", f"the reply of {what} is not JSON: {start!r}", retryable=True) from err
    if not isinstance(found, dict):
        raise ApiFault("bad_reply", f"the reply of {what} is no JSON object", retryable=True)
    return found


async def events(
    lines: AsyncIterator[str], what: str, is_last: Callable[[Mapping[str, Any]], bool] = lambda _: False
) -> AsyncGenerator[dict[str, Any], None]:
    """The events of a reply that is streamed as server-sent events.

    Args:
        lines: of the reply.
        what: whose reply it is, as it stands in a sentence.
        is_last: tells the last event, for servers whose streams do not end with ``[DONE]``.

    Raises:
        ApiFault: it was cut off, an event is no JSON object, or an event holds an error.
        BackendUnavailable: an event holds an error that every further request would meet too.
    """
    with transport_faults(what):
        async for line in lines:
            if not line.startswith("data:"):
                continue
            data = line.removeprefix("data:").strip()
            if data == "[DONE]":
                return
            event = document(data, what)
            if "error" in event:
                code = part(event, "error", "code")
                raise fault_of_status(code if isinstance(code, int) and code >= 400 else 500, data, {}, what)
            yield event
            if is_last(event):
                return
    raise ApiFault("connection_lost", f"the streamed reply of {what} was cut off", retryable=True)
