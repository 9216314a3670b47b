"""Models behind OpenAI's API: OpenAI's own, and every server that speaks it (vLLM, llama.cpp, SGLang, Ollama, …)."""

from __future__ import annotations

from typing import Any

from niah.backends.openai.options import OpenAIOptions
from niah.engines.base import ModelInfo
from niah.engines.hosted.plugin import hosted_plugin


def _describe(options: OpenAIOptions, model: str, url: str, key: str | None) -> ModelInfo:
    from niah.backends.openai.model import describe

    return describe(options, model, url, key)


def _sketch(options: OpenAIOptions, model: str) -> ModelInfo:
    from niah.backends.openai.model import sketch

    return sketch(options, model)


def _connect(options: OpenAIOptions, info: ModelInfo, url: str, key: str | None) -> tuple[Any, Any]:
    from niah.backends.openai.adapter import OpenAIAdapter
    from niah.backends.openai.batch import OpenAIBatches
    from niah.backends.openai.model import served_of

    adapter = OpenAIAdapter(options, served_of(info), url, key)
    return adapter, OpenAIBatches(adapter)


PLUGIN = hosted_plugin(
    name="openai",
    summary="models behind OpenAI's API: its own, vLLM, llama.cpp, SGLang, Ollama, LM Studio; no KV memory",
    options=OpenAIOptions,
    own_url="https://api.openai.com/v1",
    key_names=("OPENAI_API_KEY",),
    describe=_describe,
    sketch=_sketch,
    connect=_connect,
    default_model="gpt-5-mini",
    requires=(("openai", "openai"), ("stamina", "openai"), ("aiolimiter", "openai")),
    has_batches=True,
)
