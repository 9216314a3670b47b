"""Supervised child processes, which always end with this one: servers of inference engines, ranks of a ring."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from niah.engines.server import watchdog as watch
from niah.errors import BackendUnavailable, ConfigError

LOOPBACK = "127.0.0.1"
LOG_LINES = 15
_LOG_TAIL_BYTES = 16_384


class ChildProcess:
    """A command in a process group of its own, which ends with this process, however that ends.

    The end of its standard input is the signal to end: that pipe closes when this process stops the child, and also
    when this process is killed.

    Attributes:
        log: what the command writes to stderr, and to stdout where that is no pipe; kept when it failed, removed after
            an orderly end.

    Args:
        command: must end by itself when its standard input does.
        environment: of the command; None is this process's.
        label: goes into the name of the folder that holds the log.
        grace_s: seconds between the end of standard input and SIGKILL for the whole group.
        stdout: a file number or ``subprocess.PIPE``; None writes it to the log.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None,
        label: str,
        *,
        grace_s: float,
        stdout: int | None = None,
    ) -> None:
        self._grace_s = grace_s
        self._folder = Path(tempfile.mkdtemp(prefix=f"niah-{label}-"))
        self.log = self._folder / "server.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  our own argument list, no shell
                list(command),
                stdin=subprocess.PIPE,
                stdout=log if stdout is None else stdout,
                stderr=log,
                env=None if environment is None else dict(environment),
                # an interrupt from the keyboard is for this process, which then ends its children in order
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The group's leader."""
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

    def tell_to_end(self) -> None:
        """Close its standard input and wait for nothing, so that several children end at the same time."""
        for stream in (self._process.stdin, self._process.stdout):
            try:
                if stream is not None:
                    stream.close()
            except BrokenPipeError:
                continue  # the child has ended already, which is what closing is for

    def stop(self, *, keep_log: bool = False) -> None:
        """End the group and wait for it; may take some seconds. Calling it again does nothing."""
        self.tell_to_end()
        try:
            self.ended_within(self._grace_s)
        finally:
            # the group's leader may have been killed, and then nothing else ends what it has started
            self._kill()
        if not keep_log:
            shutil.rmtree(self._folder, ignore_errors=True)

    def ended_within(self, seconds: float) -> int | None:
        """The exit code, waited for; None where it still runs."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _kill(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
        self._process.wait()


class ServerProcess(ChildProcess):
    """A server, which need not read its standard input: a small watcher leads the group and ends it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], label: str) -> None:
        watched = [sys.executable, "-I", watch.__file__, *command]
        super().__init__(watched, environment, label, grace_s=watch.GRACE_S + 2)

    def start_failed(self, service: str, kv: str, late_after_s: float | None) -> BackendUnavailable:
        """Why a start came to nothing, with the log's end; ``late_after_s`` is None where the process has ended."""
        what, hint = "ended while it was starting", ""
        if late_after_s is not None:
            what, hint = f"was not ready after {late_after_s:g} s", " (backend.startup_timeout_s gives it more)"
        lines = "\n".join(f"  {line}" for line in self.last_lines())
        return BackendUnavailable(
            f"the {service} server {what}{hint} with kv {kv!r}. Its log {str(self.log)!r} ends:\n{lines}"
        )


class LineProcess(ChildProcess):
    """A command that reads lines of JSON and replies in lines of JSON; it ends when its standard input does."""

    def __init__(self, command: Sequence[str], label: str, *, grace_s: float) -> None:
        super().__init__(command, None, label, grace_s=grace_s, stdout=subprocess.PIPE)

    def send(self, message: Mapping[str, Any]) -> None:
        """One line.

        Raises:
            OSError: the command has ended.
        """
        if self._process.stdin is None:
            raise RuntimeError("the process has no standard input")
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        """The value of the next line that it writes, waited for.

        Raises:
            RuntimeError: it has ended instead.
        """
        line = self._process.stdout.readline() if self._process.stdout is not None else b""
        if not line:
            raise RuntimeError("the process has ended")
        return json.loads(line)


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
