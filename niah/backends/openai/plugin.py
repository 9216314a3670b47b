"""Models behind OpenAI's API: OpenAI's own, and every server that speaks it (vLLM, llama.cpp, SGLang, Ollama, …)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from niah.backends.openai.options import OpenAIOptions
from niah.engines.base import BackendPlugin, Engine, ModelInfo, Session, SessionRequest
from niah.engines.hosted.options import HOSTED_SUPPORT, address_problems, api_key, require_address
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.types import Host, Problem

OWN_URL = "https://api.openai.com/v1"
KEY_NAMES = ("OPENAI_API_KEY",)


def _describe(options: OpenAIOptions, model: str) -> ModelInfo:
    require_address(options)
    key = api_key(options, KEY_NAMES, OWN_URL)
    from niah.backends.openai.model import describe

    return describe(options, model, options.base_url or OWN_URL, key)


def _sketch(options: OpenAIOptions, model: str) -> ModelInfo:
    require_address(options)
    from niah.backends.openai.model import sketch

    return sketch(options, model)


def _check(options: OpenAIOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:  # noqa: ARG001
    return address_problems(options)


class _Engine:
    def __init__(self, options: OpenAIOptions, info: ModelInfo) -> None:
        self._options, self._info = options, info

    def session(self, request: SessionRequest) -> AbstractAsyncContextManager[Session]:
        from niah.backends.openai.adapter import OpenAIAdapter
        from niah.backends.openai.batch import OpenAIBatches
        from niah.backends.openai.model import served_of
        from niah.engines.hosted.session import opened

        url = self._options.base_url or OWN_URL
        adapter = OpenAIAdapter(self._options, served_of(self._info), url, api_key(self._options, KEY_NAMES, OWN_URL))
        return opened(self._options, self._info, request, adapter, OpenAIBatches(adapter))


@asynccontextmanager
async def _open(options: OpenAIOptions, info: ModelInfo) -> AsyncIterator[Engine]:
    yield _Engine(options, info)


PLUGIN = BackendPlugin(
    name="openai",
    summary="models behind OpenAI's API: its own, vLLM, llama.cpp, SGLang, Ollama, LM Studio; no KV memory",
    options=OpenAIOptions,
    describe=_describe,
    check=_check,
    support=lambda: HOSTED_SUPPORT,
    open=_open,
    default_model="gpt-5-mini",
    default_kv=("auto",),
    requires=(("openai", "openai"), ("stamina", "openai"), ("aiolimiter", "openai")),
    has_batches=True,
    sketch=_sketch,
)
