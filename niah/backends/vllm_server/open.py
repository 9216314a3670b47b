"""Start of a vLLM server, or contact with a running one: waited for, and compared with the KV setting."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from niah.backends.vllm_server.facts import Facts
from niah.backends.vllm_server.metrics import CacheInfo, parse_samples, read_cache
from niah.backends.vllm_server.options import KEY_VARIABLE
from niah.backends.vllm_server.process import start_server
from niah.backends.vllm_server.sampler import Watch
from niah.backends.vllm_server.token_server import VllmTokenServer
from niah.engines.base import ModelInfo, Session, SessionRequest
from niah.engines.http.client import http_library
from niah.engines.server.http import HttpClient
from niah.engines.server.process import ServerProcess
from niah.engines.server.token_session import TokenSession
from niah.engines.vllm.arguments import cache_dtype_name, compute_dtype
from niah.errors import BackendUnavailable, CellError, ConfigError, MissingDependency
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape

if TYPE_CHECKING:
    from niah.backends.vllm_server.options import VllmServerOptions

_POLL_S = 0.25
_SIXTEEN_BIT_WORDS = {"bf16": "bfloat16", "fp16": "float16"}


@asynccontextmanager
async def opened_session(
    options: VllmServerOptions, info: ModelInfo, request: SessionRequest
) -> AsyncIterator[Session]:
    """A session on a running server, whose process, if it is ours, is gone when the session is over.

    Raises:
        ConfigError: port taken, or a running server that serves another model, another cache or shorter prompts.
        BackendUnavailable: the server cannot be reached, or ended while it was starting.
        MissingDependency: vLLM or the HTTP library is not installed.
    """
    http_library()
    if options.base_url is not None:
        async with _session(options, info, request, options.base_url, None) as session:
            yield session
        return
    if importlib.util.find_spec("vllm") is None:
        raise MissingDependency("vllm", "vllm", "Starting a vLLM server (without backend.base_url)")
    process, address = start_server(options, info, request, on_cpu=not has_cuda())
    failed = True
    try:
        async with _session(options, info, request, address, process) as session:
            yield session
            failed = session.gone is not None
    finally:
        await asyncio.to_thread(process.stop, keep_log=failed)


def has_cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


@asynccontextmanager
async def _session(
    options: VllmServerOptions, info: ModelInfo, request: SessionRequest, address: str, process: ServerProcess | None
) -> AsyncIterator[TokenSession[Watch]]:
    client = HttpClient(address, options.request_timeout_s, KEY_VARIABLE)
    try:
        if process is not None:
            await _wait(client, process, options, request)
        try:
            facts = await _facts(client, options, info, request, started=process is not None)
            server = VllmTokenServer(options, info, request, client, facts, is_own=process is not None)
            await server.start()
        except CellError as err:
            raise BackendUnavailable(f"no vLLM server answers at {address}: {err}. Is it running?") from err
        try:
            yield TokenSession(server, info, request, process)
        finally:
            await server.close()
    finally:
        await client.close()


async def _wait(
    client: HttpClient, process: ServerProcess, options: VllmServerOptions, request: SessionRequest
) -> None:
    """Until the server is healthy; a refused connection is what a start looks like."""
    deadline = time.monotonic() + options.startup_timeout_s
    while not await client.is_healthy():
        late = time.monotonic() > deadline
        if late or not process.is_running:
            late_after_s = options.startup_timeout_s if late else None
            raise process.start_failed("vLLM", request.kv.name, late_after_s)
        await asyncio.sleep(_POLL_S)


async def _facts(
    client: HttpClient, options: VllmServerOptions, info: ModelInfo, request: SessionRequest, *, started: bool
) -> Facts:
    cards = (await client.document("/v1/models")).get("data", [])
    card = _card(cards, options, info, client.base_url)
    longest = card.get("max_model_len")
    if longest is not None and longest < request.max_length:
        raise ConfigError(
            f"the server at {client.base_url} takes {longest:,} tokens (its max_model_len) and the longest prompt with "
            f"its answer has {request.max_length:,}: ask for shorter lengths or start it with a higher --max-model-len."
        )
    facts = Facts(
        model=str(card["id"]),
        base_url=client.base_url,
        version=str((await _optional(client, "/version")).get("version", "unknown")),
        max_model_len=longest,
        cache=await _cache(client),
        asked_word=cache_dtype_name(request.kv, on_cpu=not has_cuda()) if started else "",
        compute_dtype=compute_dtype(options, request.kv) if started else "",
    )
    _compare(facts, request.kv, info, started=started)
    return facts


def _card(cards: list[dict[str, Any]], options: VllmServerOptions, info: ModelInfo, address: str) -> dict[str, Any]:
    wanted = (options.served_model,) if options.served_model else (info.name, info.source)
    for card in cards:
        if card.get("id") in wanted:
            return card
    served = ", ".join(repr(card.get("id")) for card in cards) or "nothing"
    raise ConfigError(
        f"the server at {address} serves {served}, not {wanted[0]!r}: "
        "name the model that it serves, or say --set backend.served_model=NAME when it is the same one."
    )


async def _optional(client: HttpClient, path: str) -> dict[str, Any]:
    """What a path replies that a server need not have."""
    try:
        return await client.document(path)
    except BackendUnavailable:
        return {}
    except CellError as err:
        if err.kind not in ("bad_request", "bad_reply"):
            raise
        return {}


async def _cache(client: HttpClient) -> CacheInfo | None:
    try:
        return read_cache(parse_samples(await client.text("/metrics")))
    except BackendUnavailable:
        return None


def _compare(facts: Facts, kv: KVConfig, info: ModelInfo, *, started: bool) -> None:
    """Whether the server's cache is what is asked: a server may take a setting and not follow it."""
    got = cache_mismatch(facts.cache, kv, info.shape)
    if got is None:
        return
    if started:
        raise BackendUnavailable(
            f"vLLM {facts.version} was started with --kv-cache-dtype {facts.asked_word} for kv {kv.name!r}, and its "
            f"cache is {got}: what it would answer is not about that setting. Use another setting or version."
        )
    raise ConfigError(
        f"kv {kv.name!r} is asked and the cache of the server at {facts.base_url} is {got}, which cannot be changed "
        "while it runs: start it with another --kv-cache-dtype, ask --kv auto, or add --no-reference."
    )


def cache_mismatch(cache: CacheInfo | None, kv: KVConfig, shape: ModelShape | None) -> str | None:
    """What the server's cache is instead of what is asked, in words; None when they agree as far as can be seen."""
    if kv.keys.element == "auto":
        return None
    sixteen_bit = kv.keys.element in _SIXTEEN_BIT_WORDS
    if cache is None:
        return None if sixteen_bit else "not known (it publishes no metrics)"
    accepted = {cache_dtype_name(kv), *(("auto",) if sixteen_bit else ())}
    if "fp8_e4m3" in accepted:
        accepted.add("fp8")
    if cache.dtype not in accepted:
        return f"of type {cache.dtype!r}"
    window = cache.labels.get("sliding_window")
    if kv.window is not None and window is not None and window != str(kv.window.size):
        return f"one with the window {window}"
    stored, asked = cache.element_bytes(shape), kv.keys.bits // 8
    # narrower types lie beside their scales, so that no size of an element cuts the pool evenly
    if stored is not None and asked and kv.keys.pair == kv.values.pair and stored != asked:
        return f"of type {cache.dtype!r} with {stored} bytes an element instead of {asked}"
    return None
