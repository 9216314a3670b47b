"""Models behind Google's Gemini API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from niah.backends.gemini.options import GeminiOptions
from niah.engines.base import BackendPlugin, Engine, ModelInfo, Session, SessionRequest
from niah.engines.hosted.options import HOSTED_SUPPORT, address_problems, api_key, require_address
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.types import Host, Problem

OWN_URL = "https://generativelanguage.googleapis.com"
KEY_NAMES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


def _describe(options: GeminiOptions, model: str) -> ModelInfo:
    require_address(options)
    key = api_key(options, KEY_NAMES, OWN_URL)
    from niah.backends.gemini.adapter import describe

    return describe(options, model, options.base_url or OWN_URL, key)


def _sketch(options: GeminiOptions, model: str) -> ModelInfo:
    require_address(options)
    from niah.backends.gemini.adapter import sketch

    return sketch(options, model)


def _check(options: GeminiOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:  # noqa: ARG001
    return address_problems(options)


class _Engine:
    def __init__(self, options: GeminiOptions, info: ModelInfo) -> None:
        self._options, self._info = options, info

    def session(self, request: SessionRequest) -> AbstractAsyncContextManager[Session]:
        from niah.backends.gemini.adapter import GeminiAdapter
        from niah.engines.hosted.session import opened

        key = api_key(self._options, KEY_NAMES, OWN_URL)
        adapter = GeminiAdapter(self._options, self._info.source, self._options.base_url or OWN_URL, key)
        return opened(self._options, self._info, request, adapter)


@asynccontextmanager
async def _open(options: GeminiOptions, info: ModelInfo) -> AsyncIterator[Engine]:
    yield _Engine(options, info)


PLUGIN = BackendPlugin(
    name="gemini",
    summary="models behind Google's Gemini API; no KV memory",
    options=GeminiOptions,
    describe=_describe,
    check=_check,
    support=lambda: HOSTED_SUPPORT,
    open=_open,
    default_model="gemini-2.5-flash",
    default_kv=("auto",),
    requires=(("google.genai", "gemini"), ("stamina", "gemini"), ("aiolimiter", "gemini")),
    sketch=_sketch,
)
