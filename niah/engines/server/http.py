"""The HTTP client of an inference server: documents, posts and streamed events, each fault with a kind of its own."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from niah.engines.http.bounded import UnreadableReply
from niah.engines.http.client import client_arguments, http_library
from niah.engines.http.faults import document, events, fault_of_status, transport_faults

_CONNECT_S = 10.0
_HEALTH_S = 5.0


class HttpClient:
    """One server, by its address. Nothing is asked twice: a fault is the caller's to judge.

    Every method raises what ``niah.engines.http.faults`` makes of a status or a broken connection: ``ApiFault`` for
    one request, ``BackendUnavailable`` for what every further one would meet too.

    Args:
        timeout_s: seconds of silence after which a request is given up.
        key_variable: environment variable of the server's key; empty for servers without keys.
    """

    def __init__(self, base_url: str, timeout_s: float, key_variable: str = "") -> None:
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        self._key_hint = f"Its key is read from the environment variable {key_variable}." if key_variable else ""
        self._library = http_library()
        arguments = client_arguments(self.base_url, timeout_s, _CONNECT_S, keep_alive=None, is_async=True)
        self._http = self._library.AsyncClient(**arguments, base_url=self.base_url)
        if key_variable and (key := os.environ.get(key_variable)):
            self._http.headers["Authorization"] = f"Bearer {key}"

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
        """The body of a GET."""
        return str((await self._asked("GET", path)).text)

    async def document(self, path: str) -> dict[str, Any]:
        """The JSON object that a GET replies."""
        return document(await self.text(path), path)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that a POST of one replies."""
        return document((await self._asked("POST", path, body)).text, path)

    async def events(
        self, path: str, body: Mapping[str, Any], is_last: Callable[[Mapping[str, Any]], bool] = lambda _: False
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events of a streamed reply; see ``niah.engines.http.faults.events``."""
        async with self._opened(path, body) as reply, aclosing(events(reply.aiter_lines(), path, is_last)) as found:
            async for event in found:
                yield event

    async def _asked(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        with transport_faults(f"{self.base_url}{path}"):
            reply = await self._http.request(method, path, json=body)
        self._raise_for_status(reply)
        return reply

    @asynccontextmanager
    async def _opened(self, path: str, body: Mapping[str, Any]) -> AsyncIterator[Any]:
        with transport_faults(f"{self.base_url}{path}"):
            reply = await self._http.send(self._http.build_request("POST", path, json=body), stream=True)
        try:
            if reply.status_code >= 300:
                with transport_faults(f"{self.base_url}{path}"):
                    await reply.aread()
            self._raise_for_status(reply)
            yield reply
        finally:
            await reply.aclose()

    def _raise_for_status(self, reply: Any) -> None:
        if reply.status_code >= 300:
            service = f"the server at {self.base_url}"
            raise fault_of_status(reply.status_code, reply.text, reply.headers, service, self._key_hint)
