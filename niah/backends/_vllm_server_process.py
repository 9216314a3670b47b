"""A vLLM server of our own: its command line, its start, its log, and its certain end."""

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
from typing import TYPE_CHECKING

from niah.backends import _vllm_server_watch as watch
from niah.backends._gguf import spare_threads
from niah.backends._vllm_settings import as_flags, engine_settings
from niah.backends.base import ModelInfo, SessionRequest
from niah.errors import BackendUnavailable, ConfigError

if TYPE_CHECKING:
    from niah.backends.vllm_server import VllmServerOptions

LOOPBACK = "127.0.0.1"
LOG_LINES = 15
_LOG_TAIL_BYTES = 16_384


class ServerProcess:
    """A command in a process group of its own, which ends with this process, however that ends.

    Attributes:
        log: stdout and stderr of the command; kept when it failed, removed after an orderly end.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="niah-vllm-server-"))
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


def server_command(
    options: VllmServerOptions, info: ModelInfo, request: SessionRequest, port: int, *, on_cpu: bool
) -> list[str]:
    """The command that starts a server for one KV setting."""
    settings = engine_settings(options, info, request, on_cpu=on_cpu) | {
        "served_model_name": options.served_model or info.name,
        "host": LOOPBACK,
        "port": port,
        "enable_prompt_tokens_details": True,
        "disable_uvicorn_access_log": True,
    }
    return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *as_flags(settings)]


def server_environment(options: VllmServerOptions) -> dict[str, str]:
    """This process's environment with what vLLM reads from it."""
    environment = dict(os.environ)
    environment.setdefault("VLLM_NO_USAGE_STATS", "1")
    # the in-process backend switches this off for itself; a server needs its engine in a process of its own
    environment.pop("VLLM_ENABLE_V1_MULTIPROCESSING", None)
    # nor is its quiet wanted here: the log is what says why a server did not start
    environment["VLLM_LOGGING_LEVEL"] = "INFO"
    if "VLLM_CPU_OMP_THREADS_BIND" not in environment and hasattr(os, "sched_getaffinity"):
        cores = sorted(os.sched_getaffinity(0))[: options.threads or spare_threads()]
        environment["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores))
    return environment


def start_server(
    options: VllmServerOptions, info: ModelInfo, request: SessionRequest, *, on_cpu: bool
) -> tuple[ServerProcess, str]:
    """Start a server; returns it and its address at once, long before it answers.

    Raises:
        ConfigError: the asked port is taken.
        BackendUnavailable: no process can be started.
    """
    port = pick_port(options.port)
    command = server_command(options, info, request, port, on_cpu=on_cpu)
    try:
        process = ServerProcess(command, server_environment(options))
    except OSError as err:
        raise BackendUnavailable(f"vLLM's server cannot be started: {err}.") from err
    return process, f"http://{LOOPBACK}:{port}"
