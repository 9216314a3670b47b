"""Models behind OpenAI's API: OpenAI's own, and every server that speaks it (vLLM, llama.cpp, SGLang, Ollama, …)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal

from pydantic import Field, model_validator

from niah.backends._api_options import BatchOptions, address_problems, api_key, kv_problems, require_address
from niah.backends.base import QUIET, BackendPlugin, Engine, ModelInfo, Session, SessionRequest
from niah.kv.base import KVConfig
from niah.kv.shape import ModelShape
from niah.types import Host, Problem

OWN_URL = "https://api.openai.com/v1"
KEY_NAMES = ("OPENAI_API_KEY",)


class OpenAIOptions(BatchOptions):
    """Options of the openai backend, besides those of every API.

    ``temperature`` goes to OpenAI itself only when it is set: its reasoning models refuse one.

    Attributes:
        api: ``chat``, ``responses`` or ``completions`` (the raw text, without a chat template).
        stream: read replies as they come, which tells the time of the first token and costs some of our own.
        reasoning_effort: ``low``, ``medium`` … for models that take it.
        logprobs: ask for the log-probability of the answer; not every server or model takes it.
    """

    api: Literal["chat", "responses", "completions"] = "chat"
    stream: bool = Field(default=False, json_schema_extra=QUIET)
    reasoning_effort: str | None = None
    logprobs: bool = Field(default=False, json_schema_extra=QUIET)

    @model_validator(mode="after")
    def _fits_together(self) -> OpenAIOptions:
        if self.api == "completions" and (self.reasoning_tokens or self.reasoning_effort):
            raise ValueError("api=completions knows no reasoning; use chat or responses")
        if self.api == "responses" and self.stream:
            raise ValueError("stream is for api=chat and api=completions")
        if self.api == "responses" and self.prefill == "on":
            raise ValueError("api=responses cannot begin an answer; use chat or completions, or prefill=off")
        return self


def _describe(options: OpenAIOptions, model: str) -> ModelInfo:
    require_address(options)
    key = api_key(options, KEY_NAMES, OWN_URL)
    from niah.backends._openai_model import describe

    return describe(options, model, options.base_url or OWN_URL, key)


def _sketch(options: OpenAIOptions, model: str) -> ModelInfo:
    require_address(options)
    from niah.backends._openai_model import sketch

    return sketch(options, model)


def _check(options: OpenAIOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:  # noqa: ARG001
    return [*address_problems(options), *kv_problems(kv)]


class _Engine:
    def __init__(self, options: OpenAIOptions, info: ModelInfo) -> None:
        self._options, self._info = options, info

    def session(self, request: SessionRequest) -> AbstractAsyncContextManager[Session]:
        from niah.backends._api_session import opened
        from niah.backends._openai_batch import OpenAIBatches
        from niah.backends._openai_dialect import OpenAIDialect
        from niah.backends._openai_model import served_of

        url = self._options.base_url or OWN_URL
        dialect = OpenAIDialect(self._options, served_of(self._info), url, api_key(self._options, KEY_NAMES, OWN_URL))
        return opened(self._options, self._info, request, dialect, OpenAIBatches(dialect))


@asynccontextmanager
async def _open(options: OpenAIOptions, info: ModelInfo) -> AsyncIterator[Engine]:
    yield _Engine(options, info)


PLUGIN = BackendPlugin(
    name="openai",
    summary="models behind OpenAI's API: its own, vLLM, llama.cpp, SGLang, Ollama, LM Studio; no KV memory",
    options=OpenAIOptions,
    describe=_describe,
    check=_check,
    open=_open,
    default_model="gpt-5-mini",
    default_kv=("auto",),
    requires=(("openai", "openai"), ("stamina", "openai"), ("aiolimiter", "openai")),
    has_batches=True,
    sketch=_sketch,
)
