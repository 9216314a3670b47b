"""Requests to an inference server and what can go wrong with them, each fault with a kind of its own."""

from __future__ import annotations

import importlib
import ipaddress
import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from niah.engines.bounded import HEADERS, UnreadableReply, async_hooks
from niah.errors import CellError, MissingDependency

_CONNECT_S = 10.0
_HEALTH_S = 5.0
_TOO_LONG = re.compile(r"context length|context size|maximum model length|max_model_len|longer than", re.IGNORECASE)
_MESSAGE_CHARACTERS = 500
# more than any context: larger numbers are no counts, and some do not even fit into a column of a table
_MOST_TOKENS = 10**12
_MOST_IDS = 2**31
_LEAST_LOGPROB, _ROUNDING = -1e6, 1e-3

T = TypeVar("T")


def http_library() -> Any:
    """``httpx2`` or ``httpx``, whichever is installed; they agree in all that is used here.

    Raises:
        MissingDependency: neither is installed.
    """
    for name in ("httpx2", "httpx"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise MissingDependency("httpx2", "server", "Asking a server")


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class HttpClient:
    """One server, by its address. Nothing is asked twice: a fault is the caller's to judge.

    Every method raises ``CellError`` with one of these kinds: ``connection_lost``, ``timeout``, ``server_error`` (5xx),
    ``context_too_long``, ``bad_request`` (other 4xx), ``bad_reply``, ``reply_too_large``.
    """

    def __init__(self, base_url: str, timeout_s: float, key: str | None = None) -> None:
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        self._library = http_library()
        self._http = self._library.AsyncClient(
            base_url=self.base_url,
            timeout=self._library.Timeout(timeout_s, connect=_CONNECT_S),
            # the session itself limits what is in flight
            limits=self._library.Limits(max_connections=None),
            headers=HEADERS | ({"Authorization": f"Bearer {key}"} if key else {}),
            event_hooks=async_hooks(self._library),
            # a proxy for the world outside has nothing to do with this machine's own address
            trust_env=not is_loopback(base_url),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def is_healthy(self) -> bool:
        """Whether the server answers and its engine lives."""
        try:
            reply = await self._http.get("/health", timeout=_HEALTH_S)
        except (self._library.TransportError, UnreadableReply):
            return False
        return bool(reply.status_code < 500)

    async def text(self, path: str) -> str:
        with self._faults(path):
            reply = await self._http.get(path)
        _raise_for(reply.status_code, reply.text)
        return str(reply.text)

    async def document(self, path: str) -> dict[str, Any]:
        return _document(await self.text(path), path)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        with self._faults(path):
            reply = await self._http.post(path, json=body)
        _raise_for(reply.status_code, reply.text)
        return _document(reply.text, path)

    async def events(
        self, path: str, body: Mapping[str, Any], is_last: Callable[[Mapping[str, Any]], bool] = lambda _: False
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events of a streamed reply; one that was cut off is a fault.

        Args:
            is_last: tells the last event, for servers whose streams do not end with ``[DONE]``.
        """
        async with self._opened(path, body) as reply:
            lines = reply.aiter_lines()
            while True:
                with self._faults(path):
                    line = await anext(lines, None)
                if line is None:
                    raise CellError("connection_lost", f"the reply of {path} was cut off", retryable=True)
                if not line.startswith("data:"):
                    continue
                data = line.removeprefix("data:").strip()
                if data == "[DONE]":
                    return
                event = _document(data, path)
                if "error" in event:
                    fault = event["error"]
                    code = fault.get("code") if isinstance(fault, dict) else None
                    _raise_for(code if isinstance(code, int) and code >= 400 else 500, data)
                yield event
                if is_last(event):
                    return

    @asynccontextmanager
    async def _opened(self, path: str, body: Mapping[str, Any]) -> AsyncIterator[Any]:
        with self._faults(path):
            reply = await self._http.send(self._http.build_request("POST", path, json=body), stream=True)
        try:
            if reply.status_code >= 400:
                with self._faults(path):
                    await reply.aread()
                _raise_for(reply.status_code, reply.text)
            yield reply
        finally:
            await reply.aclose()

    def _faults(self, path: str) -> _Faults:
        return _Faults(self._library, f"{self.base_url}{path}")


def count_at(found: Mapping[str, Any], name: str, default: T) -> int | T:
    """A count in a reply, ``default`` where there is none.

    Raises:
        ValueError: what is there is no count of tokens.
    """
    value = found.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_TOKENS:
        raise ValueError(name)
    return value


def number_at(found: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """A finite number in a reply.

    Raises:
        ValueError: what is there is none, or nothing is there and there is no ``default``.
    """
    value = found.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(name)
    return float(value)


def logprob_of(value: Any) -> float | None:
    """A natural log-probability in a reply; None where there is none, or only a stand-in for minus infinity.

    Raises:
        ValueError: what is there is no log-probability.
    """
    if value is None:
        return None
    # rounding may leave a hair above zero
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= _ROUNDING:
        raise ValueError("logprob")
    return float(value) if value > _LEAST_LOGPROB else None


def token_ids(values: Any) -> list[int]:
    """Token ids in a reply.

    Raises:
        ValueError: they are none.
    """
    found = list(values)
    if not all(type(value) is int and 0 <= value < _MOST_IDS for value in found):
        raise ValueError("token ids")
    return found


def text_at(found: Mapping[str, Any], name: str) -> str:
    """A text in a reply, empty where there is none.

    Raises:
        ValueError: what is there is no text.
    """
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(name)
    return value or ""


class _Faults:
    """Turns the library's transport errors into ``CellError``."""

    def __init__(self, library: Any, what: str) -> None:
        self._library, self._what = library, what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self._library.TimeoutException):
            raise CellError("timeout", f"{self._what} did not answer in time", retryable=True) from error
        if isinstance(error, self._library.TransportError):
            reason = str(error) or type(error).__name__
            raise CellError("connection_lost", f"{self._what}: {reason}", retryable=True) from error
        if isinstance(error, UnreadableReply):
            raise CellError(error.kind, f"{self._what}: {error}") from error


@contextmanager
def reading(what: str) -> Iterator[None]:
    """A value of another kind than it should be, anywhere in a reply, is a fault with a name."""
    try:
        yield
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError) as err:
        raise CellError("bad_reply", f"a value in the reply of {what} is not what it should be: {err}") from err


def _raise_for(status: int, text: str) -> None:
    if status < 400:
        return
    message = _message(text) or f"status {status}"
    if status >= 500:
        raise CellError("server_error", f"the server failed ({status}): {message}", retryable=True)
    kind = "context_too_long" if status == 400 and _TOO_LONG.search(message) else "bad_request"
    raise CellError(kind, f"the server refused ({status}): {message}")


def _message(text: str) -> str:
    """The sentence in an error body: OpenAI's shape, the older flat one, or the text as it is."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()[:_MESSAGE_CHARACTERS]
    inner = body.get("error", body) if isinstance(body, dict) else body
    said = inner.get("message", inner) if isinstance(inner, dict) else inner
    return str(said).strip()[:_MESSAGE_CHARACTERS]


def _document(text: str, path: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise CellError("bad_reply", f"the reply of {path} is not JSON: {text[:80]!r}") from err
    if not isinstance(found, dict):
        raise CellError("bad_reply", f"the reply of {path} is no JSON object: {text[:80]!r}")
    return found
