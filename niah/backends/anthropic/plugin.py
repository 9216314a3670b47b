"""Models behind Anthropic's messages API: Anthropic's own, and servers that speak it (vLLM, llama.cpp)."""

from __future__ import annotations

from typing import Any

from niah.backends.anthropic.options import AnthropicOptions
from niah.engines.base import ModelInfo
from niah.engines.hosted.plugin import hosted_plugin


def _root(url: str) -> str:
    """The address without the version that the SDK adds."""
    return url.rstrip("/").removesuffix("/v1")


def _describe(options: AnthropicOptions, model: str, url: str, key: str | None) -> ModelInfo:
    from niah.backends.anthropic.adapter import describe

    return describe(options, model, _root(url), key)


def _sketch(options: AnthropicOptions, model: str) -> ModelInfo:
    from niah.backends.anthropic.adapter import sketch

    return sketch(options, model)


def _connect(options: AnthropicOptions, info: ModelInfo, url: str, key: str | None) -> tuple[Any, Any]:
    from niah.backends.anthropic.adapter import AnthropicAdapter
    from niah.backends.anthropic.batch import AnthropicBatches

    adapter = AnthropicAdapter(options, info.source, _root(url), key)
    return adapter, AnthropicBatches(adapter)


PLUGIN = hosted_plugin(
    name="anthropic",
    summary="models behind Anthropic's messages API, the haystack in its prompt cache; no KV memory",
    options=AnthropicOptions,
    own_url="https://api.anthropic.com",
    key_names=("ANTHROPIC_API_KEY",),
    describe=_describe,
    sketch=_sketch,
    connect=_connect,
    default_model="claude-haiku-4-5",
    requires=(("anthropic", "anthropic"), ("stamina", "anthropic"), ("aiolimiter", "anthropic")),
    has_batches=True,
)
