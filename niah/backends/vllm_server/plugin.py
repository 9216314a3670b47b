"""vLLM behind its HTTP server, which is started here or runs already; KV memory by its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from niah.backends.vllm_server.options import KEY_VARIABLE, VllmServerOptions
from niah.engines.base import BackendPlugin, ModelInfo, Session, SessionRequest, per_session
from niah.engines.checkpoint.gguf import is_alias
from niah.engines.http.address import address_problems
from niah.engines.vllm.arguments import SUPPORT, describe_for_engine
from niah.engines.vllm.check import problems
from niah.kv.aspects import aspects
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.types import Host, Problem

# options that are arguments of a start
_STARTING = (
    "port",
    "startup_timeout_s",
    "threads",
    "dtype",
    "pool_bytes",
    "block_size",
    "max_num_batched_tokens",
    "max_num_seqs",
    "enforce_eager",
    "hybrid_manager",
)


def _describe(options: VllmServerOptions, model: str) -> ModelInfo:
    info = describe_for_engine(options, model)
    return replace(info, numerics={"dtype": "the server's" if options.base_url else options.dtype})


def _check(options: VllmServerOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:
    if options.base_url is None:
        return [] if options.skip_checks else problems(options, kv, shape, host)
    address = address_problems(
        options.base_url,
        allow_remote_http=options.allow_remote_http,
        example="http://127.0.0.1:8000",
        key_hint=f"Put the server's key into {KEY_VARIABLE}.",
    )
    found = [*address, *_fixed(options, kv)]
    if not options.skip_checks:
        # what the server's machine can run is not known from here, so only what vLLM has nowhere is refused
        found += problems(options, kv, shape, Host(device="cuda"))
    return found


def _fixed(options: VllmServerOptions, kv: KVConfig) -> Iterator[Problem]:
    """What only a start could set."""
    for name in _STARTING:
        if name in options.model_fields_set:
            reason = "a server that runs already cannot be told that"
            yield Problem(f"backend.{name}", str(getattr(options, name)), reason, "Drop it, or drop backend.base_url.")
    if any(True for _ in aspects(kv)):
        reason = "a server that runs already keeps its windows, layers, blocks and ranks"
        yield Problem("kv", kv.name, reason, "Drop those parts, or drop backend.base_url.")


def _session(
    options: VllmServerOptions, info: ModelInfo, request: SessionRequest
) -> AbstractAsyncContextManager[Session]:
    from niah.backends.vllm_server.open import opened_session

    return opened_session(options, info, request)


PLUGIN = BackendPlugin(
    name="vllm-server",
    summary="vLLM behind its HTTP server, started here or running already: KV memory by its metrics",
    options=VllmServerOptions,
    describe=_describe,
    check=_check,
    support=lambda: SUPPORT,
    open=per_session(_session),
    default_model="smollm2",
    default_kv=("bf16",),
    requires=(("transformers", "transformers"),),
    is_known_here=lambda _, model: is_alias(model),
)
