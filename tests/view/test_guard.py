"""The guard by itself: requests as a server hands them over."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from niah.view.guard import LOOPBACK_NAMES, Access, Guard, bracketed, host_name

TOKEN = "a-long-enough-token-1234"
LOCAL = Access(LOOPBACK_NAMES)
OPEN = Access(frozenset(), TOKEN, "niah_view_80")


def ask(access: Access, *headers: tuple[str, str], method: str = "GET", path: str = "/", query: str = "") -> Any:
    """Status and headers of the answer."""
    sent: list[MutableMapping[str, Any]] = []
    scope = {
        "type": "http", "method": method, "path": path, "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }  # fmt: skip

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    asyncio.run(Guard(PlainTextResponse("shown"), access)(scope, receive, send))
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], answered


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "LOCALHOST", "[::1]:8765"])
def test_own_names_are_answered(host: str) -> None:
    status, headers = ask(LOCAL, ("host", host), ("origin", f"http://{host}"))
    assert status == 200
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8765", "", "[::2]", "127.0.0.2"]
)
def test_other_names_are_refused(host: str) -> None:
    status, headers = ask(LOCAL, ("host", host))
    assert status == 403
    assert headers["x-frame-options"] == "DENY"


def test_no_host_or_two_are_refused() -> None:
    assert ask(LOCAL)[0] == 403
    assert ask(LOCAL, ("host", "localhost"), ("host", "evil.example"))[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "file://", "http://localhost"])
def test_other_origins_are_refused(origin: str) -> None:
    assert ask(LOCAL, ("host", "localhost:8765"), ("origin", origin))[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_reading(method: str) -> None:
    assert ask(LOCAL, ("host", "localhost"), method=method)[0] == 405


def test_a_token_is_asked_for_kept_in_a_cookie_and_taken_out_of_the_address() -> None:
    host = ("host", "10.1.2.3:80")
    assert ask(OPEN, host)[0] == 401
    assert ask(OPEN, host, query="token=wrong")[0] == 401
    status, headers = ask(OPEN, host, path="/compare", query=f"base=a&token={TOKEN}&new=b%26c")
    assert (status, headers["location"]) == (303, "/compare?base=a&new=b%26c")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert ask(OPEN, host, ("cookie", cookie.partition(";")[0]))[0] == 200
    assert ask(OPEN, host, ("cookie", "niah_view_80=wrong"))[0] == 401
    assert ask(OPEN, host, ("cookie", "niah_view_80=\u00e9"))[0] == 401
    assert ask(OPEN, host, ("authorization", f"Bearer {TOKEN}"))[0] == 200
    assert ask(OPEN, host, ("authorization", f"Basic {TOKEN}"))[0] == 401
    assert ask(OPEN, host, ("authorization", f"Bearer {TOKEN}"), ("origin", "http://evil.example"))[0] == 403


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "///evil.example"])
def test_the_redirect_leads_nowhere_else(path: str) -> None:
    _, headers = ask(OPEN, ("host", "a"), path=path, query=f"token={TOKEN}")
    assert headers["location"].startswith("/evil.example")


def test_any_host_needs_a_token() -> None:
    with pytest.raises(ValueError, match="open to everybody"):
        Access(frozenset())


def test_names() -> None:
    assert host_name("[::1]:80") == "[::1]"
    assert host_name("A.b:80") == "a.b"
    assert bracketed("::1") == "[::1]"
    assert bracketed("Host") == "host"
