"""The HTTP library, and the arguments that every client of it gets: limits, certificates, bounded replies."""

from __future__ import annotations

import importlib
import ssl
from functools import cache
from typing import Any

from niah.engines.http.address import is_local
from niah.engines.http.bounded import HEADERS, async_hooks, hooks
from niah.errors import MissingDependency


@cache
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


def client_arguments(
    base_url: str, request_timeout_s: float, connect_timeout_s: float, *, keep_alive: int | None, is_async: bool
) -> dict[str, Any]:
    """Arguments of the library's client; certificates are always verified, and replies are read up to a limit.

    Args:
        request_timeout_s: seconds of silence after which a request is given up.
        connect_timeout_s: seconds until a connection must stand.
        keep_alive: connections that are kept open for the next request; None keeps all.
    """
    library = http_library()
    return {
        "timeout": library.Timeout(request_timeout_s, connect=connect_timeout_s),
        # the session itself limits what is in flight
        "limits": library.Limits(max_connections=None, max_keepalive_connections=keep_alive),
        # a proxy for the world outside has nothing to do with this machine's own address
        "trust_env": not is_local(base_url),
        "verify": _certificates(),
        "headers": HEADERS,
        "event_hooks": async_hooks(library) if is_async else hooks(library),
    }


@cache
def _certificates() -> ssl.SSLContext:
    """One context for all clients, since reading the authorities' certificates takes a tenth of a second."""
    context: ssl.SSLContext = http_library().create_ssl_context()
    return context
