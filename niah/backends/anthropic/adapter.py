"""Requests to Anthropic's messages API through the official SDK, with the haystack marked for the prompt cache."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from niah.engines.base import ModelInfo
from niah.engines.hosted.adapter import Call, Completion, call_of
from niah.engines.hosted.retries import with_retries_now
from niah.engines.hosted.sdk import http_arguments, require_reachable, sdk_faults
from niah.engines.hosted.tokenizer import CHAT_OVERHEAD_TOKENS, TEXT_TEMPLATE, LocalCounter, headroom, tokenizer_for
from niah.engines.http.faults import ApiFault, document, reading
from niah.engines.http.values import count_or_none, odd_counts, part, shown
from niah.errors import BackendUnavailable, CellError, ConfigError, near
from niah.prompts.tokens import Counter, Tokenizer
from niah.types import Prompt

if TYPE_CHECKING:
    from niah.backends.anthropic.options import AnthropicOptions

_NO_KEY = "none"
_STOPS = {"end_turn": "end", "stop_sequence": "end", "max_tokens": "length", "refusal": "refused"}


def body_of(call: Call, options: AnthropicOptions, model: str) -> dict[str, Any]:
    """The request without its limits: the shared part first, marked for the prompt cache."""
    context: dict[str, Any] = {"type": "text", "text": call.context}
    if call.is_cacheable:
        context["cache_control"] = {"type": "ephemeral"}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [context, {"type": "text", "text": call.question}]},
    ]
    if call.assistant_prefill:
        messages.append({"role": "assistant", "content": call.assistant_prefill})
    body: dict[str, Any] = {"model": model, "messages": messages}
    if options.reasoning_tokens:
        body["thinking"] = {"type": "enabled", "budget_tokens": options.reasoning_tokens}
    return body


def _client_arguments(options: AnthropicOptions, base_url: str, key: str | None) -> dict[str, Any]:
    # the SDK sends a key as a bearer token, while some servers that speak this API know its older header only
    headers = {"X-Api-Key": key} if key and options.base_url is not None else {}
    return {"api_key": key or _NO_KEY, "base_url": base_url, "max_retries": 0, "default_headers": headers}


class AnthropicAdapter:
    """One client for all requests of a session."""

    def __init__(self, options: AnthropicOptions, model: str, base_url: str, key: str | None) -> None:
        from anthropic import AsyncAnthropic

        self._options, self._model, self._base_url = options, model, base_url
        http = httpx2.AsyncClient(**http_arguments(options, base_url, is_async=True))
        self._client = AsyncAnthropic(**_client_arguments(options, base_url, key), http_client=http)
        self._models: set[str] = set()

    async def close(self) -> None:
        await self._client.close()

    def effective(self) -> dict[str, Any]:
        served = ", ".join(sorted(self._models)) or self._model
        return {"api": "messages", "server": self._base_url, "served_model": served}

    def _sets_temperature(self) -> bool:
        """The provider's newer models refuse one, as does thinking; other servers need it to be greedy."""
        wanted = self._options.temperature is not None and not self._options.reasoning_tokens
        return wanted and (self._options.base_url is not None or "temperature" in self._options.model_fields_set)

    @property
    def client(self) -> Any:
        return self._client

    @property
    def service(self) -> str:
        return f"the server at {self._base_url}"

    def body(self, call: Call) -> tuple[dict[str, Any], dict[str, Any]]:
        """The request: what the SDK has arguments for, and what it no longer has."""
        body = body_of(call, self._options, self._model)
        body["max_tokens"] = call.answer_tokens + self._options.reasoning_tokens
        return body, {"temperature": self._options.temperature} if self._sets_temperature() else {}

    def read(self, reply: Mapping[str, Any], identity: str) -> Completion:
        """A message; see ``read_message``."""
        with reading("the reply"):
            completion = read_message(reply, identity)
        self._models |= {completion.model} - {""}
        return completion

    async def ask(self, call: Call) -> Completion:
        import anthropic

        body, extra = self.body(call)
        with sdk_faults(self.service, anthropic):
            raw = await self._client.messages.with_raw_response.create(**body, extra_body=extra or None)
            body_text = (await raw.read()).decode(errors="replace")
            return self.read(document(body_text, "messages"), body_text)


def read_message(reply: Mapping[str, Any], identity: str) -> Completion:
    """A message, read without trust.

    Raises:
        ApiFault: ``bad_reply``, ``answer_missing`` or ``context_too_long``.
    """
    blocks = reply.get("content")
    if not isinstance(blocks, list):
        names = ", ".join(sorted(map(str, reply))) or "nothing"
        raise ApiFault("answer_missing", f"the reply has no list 'content'; it holds {names}", retryable=True)
    reason = reply.get("stop_reason")
    if reason == "model_context_window_exceeded":
        raise ApiFault("context_too_long", "the model's context window was full before the answer ended")
    if not isinstance(reason, str) or reason not in _STOPS:
        raise ApiFault(
            "bad_reply", f"the reply ended by {shown(reason)}, which is no end that is known", retryable=True
        )
    usage = reply.get("usage")
    fresh = count_or_none(part(usage, "input_tokens"))
    read = count_or_none(part(usage, "cache_read_input_tokens")) or 0
    written = count_or_none(part(usage, "cache_creation_input_tokens")) or 0
    return Completion(
        text=_texts(blocks, "text", "text"),
        stop=_STOPS[reason],
        reasoning=_texts(blocks, "thinking", "thinking"),
        prompt_tokens=None if fresh is None else fresh + read + written,
        output_tokens=count_or_none(part(usage, "output_tokens")),
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=count_or_none(part(usage, "output_tokens_details", "thinking_tokens")) or 0,
        identity=identity if reply.get("id") else "",
        model=_words(reply.get("model")),
        odd_counts=odd_counts(usage),
    )


def _texts(blocks: list[Any], kind: str, field: str) -> str:
    return "".join(_words(part(block, field)) for block in blocks if part(block, "type") == kind)


def _words(value: Any) -> str:
    return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class AnthropicCounter:
    """Counts by the ``count_tokens`` endpoint, which costs nothing but a request."""

    options: AnthropicOptions
    model: str
    client: Any
    base_url: str
    tokenizer: Tokenizer
    headroom: float
    is_cheap: bool
    name: str = "anthropic count_tokens"

    def count(self, prompt: Prompt) -> int:
        call = call_of(prompt, self.tokenizer)
        body = body_of(call, self.options, self.model)
        try:
            reply = ask_now(self.options, self.client, self.base_url, "messages.count_tokens", **body)
        except CellError as err:
            raise BackendUnavailable(f"the server does not count tokens: {err}") from err
        found = count_or_none(reply.get("input_tokens"))
        if found is None:
            raise BackendUnavailable(f"the server at {self.base_url} does not count tokens as Anthropic's API does.")
        return found


def ask_now(
    options: AnthropicOptions, client: Any, base_url: str, method: str, *values: Any, **body: Any
) -> dict[str, Any]:
    """One call of the synchronous client, with retries; the reply as it came."""
    import anthropic

    def once() -> dict[str, Any]:
        resource, name = method.split(".")
        with sdk_faults(f"the server at {base_url}", anthropic):
            raw = getattr(getattr(client, resource).with_raw_response, name)(*values, **body)
            return document(raw.read(), method)

    return with_retries_now(options, once)


def _counts(options: AnthropicOptions, client: Any, base_url: str, model: str) -> bool:
    """Whether a server that speaks this API has the path that counts; not all do."""
    probe = [{"role": "user", "content": "One."}]
    try:
        reply = ask_now(options, client, base_url, "messages.count_tokens", model=model, messages=probe)
    except (BackendUnavailable, CellError):
        return False
    return bool(count_or_none(reply.get("input_tokens")))


def describe(options: AnthropicOptions, model: str, base_url: str, key: str | None) -> ModelInfo:
    """Look at the service: its models, and how it counts.

    Raises:
        ConfigError: it has no such model.
        BackendUnavailable: it does not answer, refuses the key, or speaks another API.
    """
    from anthropic import Anthropic

    require_reachable(options, base_url)
    http = httpx2.Client(**http_arguments(options, base_url))
    client = Anthropic(**_client_arguments(options, base_url, key), http_client=http)
    # it is used as long as its counter is
    weakref.finalize(client, http.close)
    card = _card(options, client, base_url, model)
    tokenizer = tokenizer_for(options.tokenizer, model)
    spare = headroom(tokenizer, model, options.tokenizer)
    counter: Counter = AnthropicCounter(
        options, model, client, base_url, tokenizer, spare, is_cheap=options.base_url is not None
    )
    if options.base_url is not None and not _counts(options, client, base_url, model):
        counter = LocalCounter(tokenizer, CHAT_OVERHEAD_TOKENS, spare)
    return _info(options, model, card, counter)


def sketch(options: AnthropicOptions, model: str) -> ModelInfo:
    """What can be completion without asking: the model may not exist, and its counts are estimates."""
    tokenizer = tokenizer_for(options.tokenizer, model)
    counter = LocalCounter(tokenizer, CHAT_OVERHEAD_TOKENS, headroom(tokenizer, model, options.tokenizer))
    return _info(options, model, {}, counter)


def _info(options: AnthropicOptions, model: str, card: Mapping[str, Any], counter: Counter) -> ModelInfo:
    context = (
        options.context_tokens
        or count_or_none(card.get("max_input_tokens"))
        or count_or_none(card.get("max_model_len"))
    )
    return ModelInfo(
        name=model,
        source=model,
        revision="served",
        tokenizer=tokenizer_for(options.tokenizer, model),
        template=TEXT_TEMPLATE,
        context_tokens=None if context is None else context - options.reasoning_tokens,
        reference_kv=None,
        numerics={"server": str(card.get("owned_by") or "anthropic")},
        reasoning_tokens=options.reasoning_tokens,
        provider="anthropic" if options.base_url is None else None,
        counter=counter,
        # the provider's newer models refuse a begun answer
        assistant_prefill=options.assistant_prefill == "on",
    )


def _card(options: AnthropicOptions, client: Any, base_url: str, model: str) -> Mapping[str, Any]:
    try:
        listed = ask_now(options, client, base_url, "models.list", limit=1000).get("data")
    except CellError as err:
        raise BackendUnavailable(f"no server answers at {base_url}: {err}. Is it running?") from err
    cards = [card for card in listed if isinstance(card, dict) and "id" in card] if isinstance(listed, list) else []
    for card in cards:
        if card["id"] == model:
            return card
    try:
        # an alias such as …-latest stands in no list
        found = ask_now(options, client, base_url, "models.retrieve", model)
        if found.get("id"):
            return found
    except (BackendUnavailable, CellError):
        pass
    names = [str(card["id"]) for card in cards]
    served = ", ".join(repr(name) for name in names[:8]) or "none"
    raise ConfigError(f"the server at {base_url} has no model {model!r}; it serves {served}.{near(model, names)}")
