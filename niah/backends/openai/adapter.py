"""Requests to OpenAI's chat, responses and completions APIs through the official SDK, with its own retries off."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from niah.backends.openai.replies import read_chat, read_completion, read_response, text_of
from niah.backends.openai.server import CONTINUE, Served, messages_of
from niah.engines.hosted.adapter import Call, Completion
from niah.engines.hosted.sdk import http_arguments, sdk_faults
from niah.engines.http.faults import document, events, reading
from niah.engines.http.values import part

if TYPE_CHECKING:
    from niah.backends.openai.options import OpenAIOptions

# the SDK needs a key even where the server needs none
_NO_KEY = "none"
_OWN_HOST = "api.openai.com"


class OpenAIAdapter:
    """One client for all requests of a session."""

    def __init__(self, options: OpenAIOptions, served: Served, base_url: str, key: str | None) -> None:
        import httpx2
        from openai import AsyncOpenAI

        self._options, self._served, self._base_url = options, served, base_url
        self._is_own = urlsplit(base_url).hostname == _OWN_HOST
        self._client = AsyncOpenAI(
            api_key=key or _NO_KEY,
            base_url=base_url,
            max_retries=0,
            http_client=httpx2.AsyncClient(**http_arguments(options, base_url, is_async=True)),
        )
        self._models: set[str] = set()
        self._bodies = {"chat": self._chat, "responses": self._response, "completions": self._completion}
        client = self._client
        self._resources: dict[str, Any] = {
            "chat": client.chat.completions,
            "responses": client.responses,
            "completions": client.completions,
        }

    async def close(self) -> None:
        await self._client.close()

    def effective(self) -> dict[str, Any]:
        return {
            "api": self._options.api,
            "server": self._base_url,
            "server_family": self._served.family or None,
            "served_model": ", ".join(sorted(self._models)) or self._served.model,
            "stream": self._options.stream,
        }

    @property
    def client(self) -> Any:
        return self._client

    @property
    def service(self) -> str:
        return f"the server at {self._base_url}"

    @property
    def endpoint(self) -> str:
        """Path of the requests, as batches name it."""
        return f"/v1/{_PATHS[self._options.api]}"

    def body(self, call: Call) -> tuple[dict[str, Any], dict[str, Any]]:
        """The request: what the SDK has arguments for, and what only some servers know."""
        body: dict[str, Any] = {"model": self._served.model}
        if self._sets_temperature():
            body["temperature"] = self._options.temperature
        return self._bodies[self._options.api](call, body)

    def _sets_temperature(self) -> bool:
        """The provider's reasoning models refuse one; other servers need it to be greedy."""
        asked = "temperature" in self._options.model_fields_set
        return self._options.temperature is not None and (self._options.base_url is not None or asked)

    def read(self, reply: Mapping[str, Any], identity: str) -> Completion:
        """A reply in the shape of the API that is used; see ``read_chat``."""
        with reading("the reply"):
            completion = _READERS[self._options.api](reply, identity)
        self._models |= {completion.model} - {""}
        return completion

    async def ask(self, call: Call) -> Completion:
        import openai

        body, extra = self.body(call)
        resource = self._resources[self._options.api]
        with sdk_faults(self.service, openai):
            if self._options.stream:
                return await self._streamed(
                    resource.with_streaming_response.create(**body, extra_body=extra, **_STREAM)
                )
            raw = await resource.with_raw_response.create(**body, extra_body=extra)
            return self.read(document(raw.content, _PATHS[self._options.api]), raw.text)

    def _chat(self, call: Call, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        extra = self._reuse(call) | (CONTINUE if call.assistant_prefill and self._served.continues else {})
        if self._options.reasoning_effort:
            body["reasoning_effort"] = self._options.reasoning_effort
        if self._options.logprobs:
            body["logprobs"] = True
        return body | self._output_limit(call) | {"messages": messages_of(call)}, extra

    def _completion(self, call: Call, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        body |= {"prompt": call.user_text + call.assistant_prefill, "max_tokens": call.answer_tokens}
        if self._options.logprobs:
            body["logprobs"] = 0 if self._served.family == "vllm" else 1
        return body, self._reuse(call)

    def _response(self, call: Call, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        limit = call.answer_tokens + self._options.reasoning_tokens
        body |= {"input": call.user_text, "max_output_tokens": limit, "store": False}
        if self._options.reasoning_effort:
            body["reasoning"] = {"effort": self._options.reasoning_effort}
        if self._options.logprobs:
            body["include"] = ["message.output_text.logprobs"]
        return body, self._reuse(call)

    def _output_limit(self, call: Call) -> dict[str, Any]:
        limit = call.answer_tokens + self._options.reasoning_tokens
        # OpenAI's own reasoning models know the one name, other servers the older one
        return {"max_completion_tokens" if self._is_own else "max_tokens": limit}

    def _reuse(self, call: Call) -> dict[str, Any]:
        """Without reuse every request gets a cache of its own, where the server can do that."""
        return {"cache_salt": uuid.uuid4().hex} if self._served.family == "vllm" and not call.is_cacheable else {}

    async def _streamed(self, opening: Any) -> Completion:
        """A reply by server-sent events, put together as if it had come in one piece.

        Raises:
            ApiFault: ``connection_lost`` when it ends before ``[DONE]``.
        """
        started, first = time.perf_counter(), None
        whole = _StreamedReply()
        async with opening as response:
            with reading("the stream"):
                async for event in events(response.iter_lines(), self.service):
                    if whole.add(event) and first is None:
                        first = time.perf_counter() - started
        return replace(self.read(whole.reply(), whole.identity), first_token_s=first)


_PATHS = {"chat": "chat/completions", "responses": "responses", "completions": "completions"}
_READERS = {"chat": read_chat, "responses": read_response, "completions": read_completion}
_STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


class _StreamedReply:
    """A streamed reply as far as it has come: the first choice only, up to its finish reason."""

    def __init__(self) -> None:
        self._text = self._content = self._reasoning = self._refusal = ""
        self._finish: Any = None
        self._logprobs: list[Any] = []
        self._usage: Any = None
        self._head: dict[str, Any] = {}

    @property
    def identity(self) -> str:
        return json.dumps([self._head.get("id"), self._head.get("created"), self._content, self._text])

    def add(self, event: Mapping[str, Any]) -> bool:
        """Whether the event brought words."""
        self._head = self._head or {key: event.get(key) for key in ("id", "created", "model")}
        self._usage = event.get("usage") or self._usage
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else None
        if choice is None or choice.get("index", 0) != 0 or self._finish is not None:
            return False
        delta = choice.get("delta")
        words = [text_of(part(delta, "content")), text_of(choice.get("text")), text_of(part(delta, "refusal"))]
        thought = text_of(part(delta, "reasoning_content") or part(delta, "reasoning"))
        self._content += words[0]
        self._text += words[1]
        self._refusal += words[2]
        self._reasoning += thought
        logprobs = part(choice, "logprobs", "content")
        if not isinstance(logprobs, list):
            values = part(choice, "logprobs", "token_logprobs")
            logprobs = [{"logprob": value} for value in values] if isinstance(values, list) else []
        self._logprobs += logprobs
        self._finish = choice.get("finish_reason")
        return any(words) or bool(thought)

    def reply(self) -> dict[str, Any]:
        message = {"content": self._content, "reasoning_content": self._reasoning, "refusal": self._refusal}
        choice: dict[str, Any] = {"message": message, "text": self._text, "finish_reason": self._finish}
        if self._text and not self._content:
            choice["message"] = {**message, "content": self._text}
        if self._logprobs:
            choice["logprobs"] = {"content": self._logprobs}
        return {**self._head, "choices": [choice], "usage": self._usage}
