"""A server in a process of its own: its start, its log, and its certain end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from niah.engines.server import watchdog as watch
from niah.errors import BackendUnavailable, ConfigError

LOOPBACK = "127.0.0.1"
LOG_LINES = 15
_LOG_TAIL_BYTES = 16_384


class ServerProcess:
    """A command in a process group of its own, which ends with this process, however that ends.

    Attributes:
        log: stdout and stderr of the command; kept when it failed, removed after an orderly end.

    Args:
        label: goes into the name of the folder that holds the log.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], label: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=f"niah-{label}-"))
        self.log = self._folder / "server.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  our own argument list, no shell
                [sys.executable, "-I", watch.__file__, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The group's leader: a small watcher, whose child the command is."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def last_lines(self, count: int = LOG_LINES) -> list[str]:
        """The end of the log."""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LOG_TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
        return [line for line in text.splitlines() if line.strip()][-count:]

    def start_failed(self, service: str, kv: str, late_after_s: float | None) -> BackendUnavailable:
        """Why a start came to nothing, with the log's end; ``late_after_s`` is None where the process has ended."""
        what, hint = "ended while it was starting", ""
        if late_after_s is not None:
            what, hint = f"was not ready after {late_after_s:g} s", " (backend.startup_timeout_s gives it more)"
        lines = "\n".join(f"  {line}" for line in self.last_lines())
        return BackendUnavailable(
            f"the {service} server {what}{hint} with kv {kv!r}. Its log {str(self.log)!r} ends:\n{lines}"
        )

    def stop(self, *, keep_log: bool = False) -> None:
        """End the group and wait for it; may take some seconds. Calling it again does nothing."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(watch.GRACE_S + 2)
        except subprocess.TimeoutExpired:
            pass
        finally:
            # the watcher itself may have been killed: then nobody else ends the group
            self._kill()
        if not keep_log:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _kill(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
        self._process.wait()


def pick_port(asked: int | None) -> int:
    """The asked port, or a free one.

    Raises:
        ConfigError: something listens on the asked port already.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # as servers do: a port that a finished connection still holds is free
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, asked or 0))
        except OSError as err:
            raise ConfigError(
                f"port {asked} of {LOOPBACK} cannot be used ({err.strerror}): stop what listens there, "
                "name another backend.port, or name none and a free one is taken."
            ) from err
        return int(probe.getsockname()[1])
