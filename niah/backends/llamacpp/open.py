"""Start of a llama.cpp server for one KV setting: waited for until it listens, its cache compared with the setting."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from niah.backends.llamacpp import child
from niah.backends.llamacpp.log import EngineReport, read_report
from niah.backends.llamacpp.token_server import LlamaCppTokenServer
from niah.engines.base import ModelInfo, Session, SessionRequest
from niah.engines.http.client import http_library
from niah.engines.server.http import HttpClient
from niah.engines.server.process import ServerProcess
from niah.engines.server.token_session import TokenSession
from niah.errors import BackendUnavailable, CellError
from niah.kv.config import KVConfig

if TYPE_CHECKING:
    from niah.backends.llamacpp.options import LlamaCppOptions

_POLL_S = 0.05
# the canaries of a run whose cells are shorter still than they are
_LEAST_CELLS = 512
_ADDRESS = re.compile(rf"{child.LISTENING} (\S+)\s")
_PROBE = "The number for Oslo is 7412839.\n\n  It's naïve — 東京!"


@asynccontextmanager
async def opened_session(options: LlamaCppOptions, info: ModelInfo, request: SessionRequest) -> AsyncIterator[Session]:
    """A session on a server of its own, whose process is gone when the session is over.

    Raises:
        BackendUnavailable: it cannot be started, or its cache is not what was asked.
        MissingDependency: the HTTP library is not installed.
    """
    http_library()
    process = _start(options, info, request)
    failed = True
    try:
        address = await _wait(process, options, request)
        client = HttpClient(address, options.request_timeout_s)
        try:
            log = process.log.read_text(encoding="utf-8", errors="replace")
            report = read_report(log, keeps_all=options.swa_full)
            _compare(report, request.kv)
            facts = await _facts(client, info)
            server = LlamaCppTokenServer(options, info, request, client, report, facts)
            session = TokenSession(server, info, request, process)
            yield session
            failed = session.gone is not None
        finally:
            await client.close()
    finally:
        await asyncio.to_thread(process.stop, keep_log=failed)


def child_arguments(options: LlamaCppOptions, info: ModelInfo, request: SessionRequest) -> dict[str, Any]:
    """The argument of the child process, as JSON."""
    from niah.backends.llamacpp.cache_types import WORDS

    return {
        "model": info.source,
        "cells": max(request.max_length, _LEAST_CELLS),
        "k": WORDS[request.kv.keys.element],
        "v": WORDS[request.kv.values.element],
        "flash_attn": options.flash_attn,
        "swa_full": options.swa_full,
        "gpu_layers": options.gpu_layers,
        "threads": options.thread_count(),
        "batch": options.batch,
        "ubatch": options.ubatch,
    }


def _start(options: LlamaCppOptions, info: ModelInfo, request: SessionRequest) -> ServerProcess:
    arguments = json.dumps(child_arguments(options, info, request))
    try:
        return ServerProcess([sys.executable, "-I", child.__file__, arguments], dict(os.environ), "llamacpp")
    except OSError as err:
        raise BackendUnavailable(f"llama.cpp cannot be started: {err}.") from err


def listening_address(log: str) -> str | None:
    """Where the server listens; looked for anywhere in its log, since the engine writes on at once and into lines."""
    said = _ADDRESS.search(log)
    return said[1] if said else None


async def _wait(process: ServerProcess, options: LlamaCppOptions, request: SessionRequest) -> str:
    """The server's address, once it listens; it says so only when the model is loaded."""
    deadline = time.monotonic() + options.startup_timeout_s
    while True:
        if address := listening_address(process.log.read_text(encoding="utf-8", errors="replace")):
            return address
        late = time.monotonic() > deadline
        if late or not process.is_running:
            late_after_s = options.startup_timeout_s if late else None
            raise process.start_failed("llama.cpp", request.kv.name, late_after_s)
        await asyncio.sleep(_POLL_S)


def _compare(report: EngineReport, kv: KVConfig) -> None:
    """Whether the cache is what was asked."""
    for part in report.parts:
        for side, asked, got in (
            ("keys", kv.keys.element, part.k_dtype),
            ("values", kv.values.element, part.v_dtype),
        ):
            if asked not in ("auto", got):
                raise BackendUnavailable(
                    f"llama.cpp was asked for {side} of type {asked} and keeps {got}: what it would answer is not "
                    f"about kv {kv.name!r}. Use another setting or version of xllamacpp."
                )


async def _facts(client: HttpClient, info: ModelInfo) -> dict[str, Any]:
    """What the server says beside its log.

    ``tokenizer_agrees`` compares its tokenizer with the one used here, and ``prompt.start_agrees`` the tokens that it
    would put before a text with those that each prompt begins with.
    """
    try:
        reply = await client.post("/tokenize", {"content": _PROBE, "add_special": False, "parse_special": False})
        begun = await client.post("/tokenize", {"content": _PROBE, "add_special": True, "parse_special": False})
    except CellError as err:
        raise BackendUnavailable(f"the llama.cpp server does not answer: {err}.") from err
    own = info.tokenizer.encode_batch([_PROBE])[0]
    bare, whole = list(reply.get("tokens", ())), list(begun.get("tokens", ()))
    start = next((whole[:at] for at in range(len(whole)) if whole[at : at + len(bare)] == bare), whole)
    first = info.tokenizer.encode(info.template.start + info.template.prefix)
    return {
        "engine": f"xllamacpp {importlib.metadata.version('xllamacpp')}",
        "tokenizer_agrees": bare == own,
        "prompt.start_agrees": first[: len(start)] == start,
    }
