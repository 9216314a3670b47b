"""The command line, environment and start of a vLLM server."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.server.process import LOOPBACK, ServerProcess, pick_port
from niah.engines.threads import thread_places
from niah.engines.vllm.arguments import as_flags, engine_settings
from niah.errors import BackendUnavailable

if TYPE_CHECKING:
    from niah.backends.vllm_server.options import VllmServerOptions

# a socket's path has 107 characters at most, and vLLM puts a slash and a UUID behind the folder
_LONGEST_SOCKET_FOLDER = 107 - 37
_SHORT_FOLDER = "/tmp"  # noqa: S108  only sockets with random names go there


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
    # its processes talk through sockets in the temporary folder, whose names the system limits
    if len(tempfile.gettempdir()) > _LONGEST_SOCKET_FOLDER and Path(_SHORT_FOLDER).is_dir():
        environment.setdefault("VLLM_RPC_BASE_PATH", _SHORT_FOLDER)
    if "VLLM_CPU_OMP_THREADS_BIND" not in environment and hasattr(os, "sched_getaffinity"):
        cores = thread_places(options.threads)
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
        process = ServerProcess(command, server_environment(options), "vllm-server")
    except OSError as err:
        raise BackendUnavailable(f"vLLM's server cannot be started: {err}.") from err
    return process, f"http://{LOOPBACK}:{port}"
