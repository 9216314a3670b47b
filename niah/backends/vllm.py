"""vLLM in this process: paged KV caches, prefix caching, and the blocks that each request really holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal

from pydantic import Field

from niah.backends._hf_model import describe_model
from niah.backends._vllm_check import problems
from niah.backends.base import QUIET, BackendOptions, BackendPlugin, Engine, ModelInfo, Session, SessionRequest
from niah.kv.base import KVConfig
from niah.kv.shape import ModelShape
from niah.types import Host, Problem


class VllmOptions(BackendOptions):
    """Options of the vllm backend.

    Attributes:
        dtype: compute type where the KV setting leaves it open (``auto``); bf16 and fp16 settings bring their own.
        template: ``auto`` uses the model's chat template where it has one, else plain completion.
        pool_bytes: KV pool; None is enough for a few of the longest prompts on a CPU, and vLLM's own share of a GPU.
        block_size: tokens per block; None leaves it to vLLM (128 on a CPU).
        max_num_batched_tokens: tokens per engine step, which is the prefill chunk; None leaves it to vLLM.
        max_num_seqs: requests that run at a time.
        hybrid_manager: give window layers only the blocks of their window; False gives them full-length ones.
        enforce_eager: no graph capture or compilation.
        threads: CPU threads; None is one less than the cores.
        logprobs: score the expected answer from the cached prefix.
        trust_me: skip the check of what this machine can run; the canary still looks.
        trust_remote_code: run code that a model's repository brings along.
    """

    dtype: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    template: Literal["auto", "chat", "completion"] = "auto"
    pool_bytes: int | None = Field(default=None, ge=1 << 20, json_schema_extra=QUIET)
    block_size: int | None = Field(default=None, ge=1)
    max_num_batched_tokens: int | None = Field(default=None, ge=1)
    max_num_seqs: int = Field(default=16, ge=1)
    hybrid_manager: bool = True
    enforce_eager: bool = True
    threads: int | None = Field(default=None, ge=1, json_schema_extra=QUIET)
    logprobs: bool = True
    trust_me: bool = Field(default=False, json_schema_extra=QUIET)
    trust_remote_code: bool = False
    revision: str | None = None


def _describe(options: VllmOptions, model: str) -> ModelInfo:
    info = describe_model(
        model,
        template=options.template,
        trust_remote_code=options.trust_remote_code,
        revision=options.revision,
    )
    return replace(info, numerics={"dtype": options.dtype})


def _check(options: VllmOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:
    if options.trust_me:
        return []
    return problems(kv, shape, host)


class _Engine:
    def __init__(self, options: VllmOptions, info: ModelInfo) -> None:
        self._options, self._info = options, info

    @asynccontextmanager
    async def session(self, request: SessionRequest) -> AsyncIterator[Session]:
        from niah.backends._vllm_session import VllmSession

        session = VllmSession(self._options, self._info, request)
        await session.start()
        try:
            yield session
        finally:
            await session.close()


@asynccontextmanager
async def _open(options: VllmOptions, info: ModelInfo) -> AsyncIterator[Engine]:
    # the KV setting is an argument of the engine itself, so each session loads its own
    yield _Engine(options, info)


PLUGIN = BackendPlugin(
    name="vllm",
    summary="vLLM in this process (GPU, or its CPU build): paged caches, blocks counted per request",
    options=VllmOptions,
    describe=_describe,
    check=_check,
    open=_open,
    default_model="smollm2",
    default_kv=("bf16",),
    requires=(("vllm", "vllm"), ("transformers", "transformers")),
)
