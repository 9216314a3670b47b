"""Serves the pages on one address until it is told to stop."""

from __future__ import annotations

import errno
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from niah.engines.http.address import is_loopback
from niah.errors import ConfigError
from niah.report.palette import Palette

TOKEN_VARIABLE = "NIAH_VIEW_TOKEN"  # noqa: S105 - the variable's name
LOOPBACK = "127.0.0.1"
PORT = 8765
_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound
_REASONS = {
    errno.EADDRINUSE: "it is in use. Choose another with --port, or --port 0 for a free one.",
    errno.EACCES: "that needs more rights. Choose a port from 1024 on with --port.",
    errno.EADDRNOTAVAIL: "this machine has no such address. Use 127.0.0.1, or 0.0.0.0 for all that it has.",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """A listening socket, the address for people, and what requests must show."""

    listener: socket.socket
    host: str
    port: int
    token: str | None

    @property
    def url(self) -> str:
        """What to open in a browser; it holds the token where there is one."""
        # an address that stands for all of them cannot be opened from elsewhere
        host = socket.gethostname() if self.host in _ANY else self.host
        shown = f"[{host}]" if ":" in host else host
        query = f"?token={self.token}" if self.token else ""
        return f"http://{shown}:{self.port}/{query}"


def choose_token(host: str, *, make: bool) -> str | None:
    """The token that requests must show; None where only this machine can ask and none was wished for.

    Args:
        host: the address to be bound.
        make: make a new one when the environment holds none.

    Raises:
        ConfigError: another address than this machine's own needs one, or the one given is too short.
    """
    from niah.view.guard import SHORTEST_TOKEN

    given = os.environ.get(TOKEN_VARIABLE, "").strip()
    if given:
        if len(given) < SHORTEST_TOKEN or not given.isascii() or not given.isprintable() or set(given) & set(' ";,\\'):
            raise ConfigError(
                f"{TOKEN_VARIABLE} must have at least {SHORTEST_TOKEN} letters and digits. --token makes a good one."
            )
        return given
    if make:
        return secrets.token_urlsafe(24)
    if not is_loopback(host):
        raise ConfigError(
            f"on {host} others can reach niah view, so it needs a token: add --token, which makes and prints one, or "
            f"set {TOKEN_VARIABLE}. On 127.0.0.1 it needs none."
        )
    return None


def bind(host: str, port: int, token: str | None) -> Bound:
    """Listen on an address before anything else is loaded, so that a wrong one is told at once.

    Raises:
        ConfigError: the address does not exist, is in use, or may not be used.
    """
    if not 0 <= port <= 65_535:
        raise ConfigError(f"--port {port} is no port: use 1024 to 65535, or 0 for a free one.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as err:
        raise ConfigError(f"--host {host!r} is no address of this machine: {err}. Use 127.0.0.1.") from err
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as err:
        listener.close()
        reason = _REASONS.get(err.errno or 0, f"{err.strerror or err}.")
        raise ConfigError(f"cannot listen on {host} port {port}: {reason}") from err
    return Bound(listener, host, listener.getsockname()[1], token)


def serve(results: Path, bound: Bound, palette: Palette, ready: Callable[[str], None]) -> None:
    """Answer requests until Ctrl-C or SIGTERM.

    Raises:
        StoreError: there is no results folder.
    """
    import uvicorn

    from niah.view.app import make_app
    from niah.view.guard import LOOPBACK_NAMES, Access, bracketed
    from niah.view.runs import Results

    hosts = set() if bound.host in _ANY else {bracketed(bound.host)}
    if is_loopback(bound.host):
        hosts |= LOOPBACK_NAMES
    access = Access(frozenset(hosts), bound.token, f"niah_view_{bound.port}")
    app = make_app(Results.open(results), access, palette)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # addresses may hold the token
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,
        ws="none",
    )
    ready(bound.url)
    uvicorn.Server(config).run(sockets=[bound.listener])
