"""Models behind Google's Gemini API."""

from __future__ import annotations

from typing import Any

from niah.backends.gemini.options import GeminiOptions
from niah.engines.base import ModelInfo
from niah.engines.hosted.plugin import hosted_plugin


def _describe(options: GeminiOptions, model: str, url: str, key: str | None) -> ModelInfo:
    from niah.backends.gemini.adapter import describe

    return describe(options, model, url, key)


def _sketch(options: GeminiOptions, model: str) -> ModelInfo:
    from niah.backends.gemini.adapter import sketch

    return sketch(options, model)


def _connect(options: GeminiOptions, info: ModelInfo, url: str, key: str | None) -> tuple[Any, Any]:
    from niah.backends.gemini.adapter import GeminiAdapter

    return GeminiAdapter(options, info.source, url, key), None


PLUGIN = hosted_plugin(
    name="gemini",
    summary="models behind Google's Gemini API; no KV memory",
    options=GeminiOptions,
    own_url="https://generativelanguage.googleapis.com",
    key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    describe=_describe,
    sketch=_sketch,
    connect=_connect,
    default_model="gemini-2.5-flash",
    requires=(("google.genai", "gemini"), ("stamina", "gemini"), ("aiolimiter", "gemini")),
)
