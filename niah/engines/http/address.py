"""Addresses of servers: which are on this machine, and which may not be used."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from niah.types import Problem


def is_loopback(host: str) -> bool:
    """Whether a host can be reached from this machine only. A name other than localhost is taken as reachable."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_local(url: str) -> bool:
    """Whether the server of an address is on this machine."""
    return is_loopback(urlsplit(url).hostname or "")


def address_problems(url: str | None, *, allow_remote_http: bool, example: str, key_hint: str) -> Iterator[Problem]:
    """Why a ``base_url`` may not be used. The value may hold a password, so it is shown without.

    Args:
        url: None is the provider's own address, or a server that is started here.
        example: an address of the kind that is wanted.
        key_hint: where a key belongs instead.
    """
    if url is None:
        return
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host:
        yield Problem("backend.base_url", url, "it is no http address", f"Write for instance {example}.")
        return
    shown = f"{parts.scheme}://{host}"
    if parts.username or parts.password or parts.query:
        yield Problem(
            "backend.base_url", shown, "a password or key in an address would be stored with the run", key_hint
        )
    if parts.scheme == "http" and not is_loopback(host) and not allow_remote_http:
        reason = "plain http to another machine can be read on the way"
        yield Problem("backend.base_url", shown, reason, "Use https, or --set backend.allow_remote_http=true.")
