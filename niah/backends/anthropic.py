"""Models behind Anthropic's messages API: Anthropic's own, and servers that speak it (vLLM, llama.cpp)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from pydantic import model_validator

from niah.backends._api_options import BatchOptions, address_problems, api_key, kv_problems, require_address
from niah.backends.base import BackendPlugin, Engine, ModelInfo, Session, SessionRequest
from niah.kv.base import KVConfig
from niah.kv.shape import ModelShape
from niah.types import Host, Problem

OWN_URL = "https://api.anthropic.com"
KEY_NAMES = ("ANTHROPIC_API_KEY",)
# what the API takes at least for thinking
LEAST_THINKING_TOKENS = 1024


class AnthropicOptions(BatchOptions):
    """Options of the anthropic backend: those of every API. ``base_url`` is without ``/v1``.

    ``temperature`` goes to Anthropic itself only when it is set: its newer models refuse one.
    """

    @model_validator(mode="after")
    def _thinks_enough(self) -> AnthropicOptions:
        if 0 < self.reasoning_tokens < LEAST_THINKING_TOKENS:
            raise ValueError(f"reasoning_tokens must be 0 or at least {LEAST_THINKING_TOKENS} for this API")
        if self.reasoning_tokens and self.prefill == "on":
            raise ValueError("with reasoning_tokens the answer cannot be begun; leave prefill out")
        return self


def _url(options: AnthropicOptions) -> str:
    return (options.base_url or OWN_URL).rstrip("/").removesuffix("/v1")


def _describe(options: AnthropicOptions, model: str) -> ModelInfo:
    require_address(options)
    key = api_key(options, KEY_NAMES, OWN_URL)
    from niah.backends._anthropic_dialect import describe

    return describe(options, model, _url(options), key)


def _sketch(options: AnthropicOptions, model: str) -> ModelInfo:
    require_address(options)
    from niah.backends._anthropic_dialect import sketch

    return sketch(options, model)


def _check(options: AnthropicOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:  # noqa: ARG001
    return [*address_problems(options), *kv_problems(kv)]


class _Engine:
    def __init__(self, options: AnthropicOptions, info: ModelInfo) -> None:
        self._options, self._info = options, info

    def session(self, request: SessionRequest) -> AbstractAsyncContextManager[Session]:
        from niah.backends._anthropic_batch import AnthropicBatches
        from niah.backends._anthropic_dialect import AnthropicDialect
        from niah.backends._api_session import opened

        key = api_key(self._options, KEY_NAMES, OWN_URL)
        dialect = AnthropicDialect(self._options, self._info.source, _url(self._options), key)
        return opened(self._options, self._info, request, dialect, AnthropicBatches(dialect))


@asynccontextmanager
async def _open(options: AnthropicOptions, info: ModelInfo) -> AsyncIterator[Engine]:
    yield _Engine(options, info)


PLUGIN = BackendPlugin(
    name="anthropic",
    summary="models behind Anthropic's messages API, the haystack in its prompt cache; no KV memory",
    options=AnthropicOptions,
    describe=_describe,
    check=_check,
    open=_open,
    default_model="claude-haiku-4-5",
    default_kv=("auto",),
    requires=(("anthropic", "anthropic"), ("stamina", "anthropic"), ("aiolimiter", "anthropic")),
    has_batches=True,
    sketch=_sketch,
)
