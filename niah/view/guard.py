"""Who may read: the Host and Origin of every request are checked, and other machines need a token.

A page anywhere on the web can make a browser send requests to this machine's own ports, under its own name when that
name is made to point here. Neither gets an answer: the Host header must name an address that was bound, and an Origin
must be that same address.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHORTEST_TOKEN = 16
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Access:
    """What a request must show.

    Attributes:
        hosts: names allowed in the Host header, IPv6 in brackets; empty allows any, which takes a token.
        token: must come with every request; None where only this machine can ask.
        cookie: its name; one for each port, because browsers share cookies between ports.
    """

    hosts: Collection[str]
    token: str | None = None
    cookie: str = "niah_view"

    def __post_init__(self) -> None:
        if not self.hosts and self.token is None:
            raise ValueError("any host without a token would be open to everybody")


def host_name(header: str) -> str:
    """The name in a Host header, without its port and in lower case; IPv6 keeps its brackets."""
    name = header.strip().lower()
    if name.startswith("["):
        return name[: name.find("]") + 1]
    return name.partition(":")[0]


def bracketed(host: str) -> str:
    """A bound address as it stands in a URL."""
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host.lower()


class Guard:
    """Refuses what is not to be answered, and marks every answer as nobody else's business."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # there are no web sockets here
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, _marked(send))
            return
        await self._app(scope, receive, _marked(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("niah view only shows; it takes GET.", 405, {"allow": "GET, HEAD"})
        names = headers.getlist("host")
        if len(names) != 1 or (self._access.hosts and host_name(names[0]) not in self._access.hosts):
            return PlainTextResponse("This is niah view, but not under that name: the Host header is refused.", 403)
        origins = headers.getlist("origin")
        allowed = {f"{scheme}://{names[0].strip().lower()}" for scheme in ("http", "https")}
        if any(origin.strip().lower() not in allowed for origin in origins):
            return PlainTextResponse("Another site may not read these results: the Origin header is refused.", 403)
        return self._token_refusal(scope, headers)

    def _token_refusal(self, scope: Scope, headers: Headers) -> Response | None:
        token = self._access.token
        if token is None:
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if given:
            return self._welcome(scope, query, token) if _same(given[-1], token) else _no_token()
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        offered = [self._cookie(headers), bearer.strip() if scheme.lower() == "bearer" else ""]
        return None if any(_same(value, token) for value in offered) else _no_token()

    def _cookie(self, headers: Headers) -> str:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(self._access.cookie)
        except CookieError:
            return ""
        return "" if morsel is None else morsel.value

    def _welcome(self, scope: Scope, query: list[tuple[str, str]], token: str) -> Response:
        """Keep the token in a cookie and take it out of the address, which browsers remember and show."""
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # one leading slash only: two would lead to another host
        path = "/" + scope["path"].lstrip("/\\")
        response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        response.set_cookie(self._access.cookie, token, httponly=True, samesite="strict", path="/")
        return response


def _same(offered: str, token: str) -> bool:
    return secrets.compare_digest(offered.encode(), token.encode())


def _no_token() -> Response:
    text = "This page needs the token that niah view printed: open the address with ?token=… once."
    return PlainTextResponse(text, 401, {"www-authenticate": "Bearer"})


def _marked(send: Send) -> Send:
    async def marking(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return marking
