"""vLLM in this process: paged KV caches, prefix caching, and the blocks that each request really holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from niah.backends.vllm.options import VllmOptions
from niah.engines.base import BackendPlugin, ModelInfo, Session, SessionRequest, per_session
from niah.engines.checkpoint.gguf import is_alias
from niah.engines.vllm.arguments import SUPPORT, describe_for_engine
from niah.engines.vllm.check import problems
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.types import Host, Problem


def _describe(options: VllmOptions, model: str) -> ModelInfo:
    info = describe_for_engine(options, model)
    return replace(info, numerics={"dtype": options.dtype})


def _check(options: VllmOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:
    if options.skip_checks:
        return []
    return problems(options, kv, shape, host)


@asynccontextmanager
async def _session(options: VllmOptions, info: ModelInfo, request: SessionRequest) -> AsyncIterator[Session]:
    from niah.backends.vllm.session import VllmSession

    session = VllmSession(options, info, request)
    await session.start()
    try:
        yield session
    finally:
        await session.close()


PLUGIN = BackendPlugin(
    name="vllm",
    summary="vLLM in this process (GPU, or its CPU build): paged caches, blocks counted per request",
    options=VllmOptions,
    describe=_describe,
    check=_check,
    support=lambda: SUPPORT,
    open=per_session(_session),
    default_model="smollm2",
    default_kv=("bf16",),
    requires=(("vllm", "vllm"), ("transformers", "transformers")),
    is_known_here=lambda _, model: is_alias(model),
)
