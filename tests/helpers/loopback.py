"""Nothing leaves this machine: sockets to elsewhere are closed before they are opened."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest


def is_here(host: object) -> bool:
    if host is None or host in ("", "localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host)).is_loopback
    except ValueError:
        return False


def close_other_sockets(patch: pytest.MonkeyPatch) -> None:
    """Refuse every address and name that is not on loopback, whatever library asks for it."""

    def guarded(name: str, address_at: int) -> None:
        original = getattr(socket.socket, name)

        def call(self: socket.socket, *args: Any) -> Any:
            address = args[address_at]
            if isinstance(address, tuple) and not is_here(address[0]):
                raise OSError(f"tests may not connect to {address[0]}")
            return original(self, *args)

        patch.setattr(socket.socket, name, call)

    for name in ("connect", "connect_ex"):
        guarded(name, 0)
    guarded("sendto", -1)
    look_up = socket.getaddrinfo

    def guarded_look_up(host: Any, *args: Any, **more: Any) -> Any:
        if not is_here(host):
            raise socket.gaierror(f"tests may not look up {host}")
        return look_up(host, *args, **more)

    patch.setattr(socket, "getaddrinfo", guarded_look_up)
