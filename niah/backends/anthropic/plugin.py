"""Models behind Anthropic's messages API: Anthropic's own, and servers that speak it (vLLM, llama.cpp)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from niah.backends.anthropic.options import AnthropicOptions
from niah.engines.base import BackendPlugin, Engine, ModelInfo, Session, SessionRequest
from niah.engines.hosted.options import HOSTED_SUPPORT, address_problems, api_key, require_address
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.types import Host, Problem

OWN_URL = "https://api.anthropic.com"
KEY_NAMES = ("ANTHROPIC_API_KEY",)


def _url(options: AnthropicOptions) -> str:
    return (options.base_url or OWN_URL).rstrip("/").removesuffix("/v1")


def _describe(options: AnthropicOptions, model: str) -> ModelInfo:
    require_address(options)
    key = api_key(options, KEY_NAMES, OWN_URL)
    from niah.backends.anthropic.adapter import describe

    return describe(options, model, _url(options), key)


def _sketch(options: AnthropicOptions, model: str) -> ModelInfo:
    require_address(options)
    from niah.backends.anthropic.adapter import sketch

    return sketch(options, model)


def _check(options: AnthropicOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:  # noqa: ARG001
    return address_problems(options)


class _Engine:
    def __init__(self, options: AnthropicOptions, info: ModelInfo) -> None:
        self._options, self._info = options, info

    def session(self, request: SessionRequest) -> AbstractAsyncContextManager[Session]:
        from niah.backends.anthropic.adapter import AnthropicAdapter
        from niah.backends.anthropic.batch import AnthropicBatches
        from niah.engines.hosted.session import opened

        key = api_key(self._options, KEY_NAMES, OWN_URL)
        adapter = AnthropicAdapter(self._options, self._info.source, _url(self._options), key)
        return opened(self._options, self._info, request, adapter, AnthropicBatches(adapter))


@asynccontextmanager
async def _open(options: AnthropicOptions, info: ModelInfo) -> AsyncIterator[Engine]:
    yield _Engine(options, info)


PLUGIN = BackendPlugin(
    name="anthropic",
    summary="models behind Anthropic's messages API, the haystack in its prompt cache; no KV memory",
    options=AnthropicOptions,
    describe=_describe,
    check=_check,
    support=lambda: HOSTED_SUPPORT,
    open=_open,
    default_model="claude-haiku-4-5",
    default_kv=("auto",),
    requires=(("anthropic", "anthropic"), ("stamina", "anthropic"), ("aiolimiter", "anthropic")),
    has_batches=True,
    sketch=_sketch,
)
