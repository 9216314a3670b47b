"""Requests to Gemini's generateContent API through the official SDK, with its own retries off."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

from niah.engines.base import ModelInfo
from niah.engines.hosted.adapter import Call, Completion, call_of
from niah.engines.hosted.retries import with_retries_now
from niah.engines.hosted.sdk import http_arguments, require_reachable
from niah.engines.hosted.tokenizer import CHAT_OVERHEAD_TOKENS, TEXT_TEMPLATE, LocalCounter, headroom, tokenizer_for
from niah.engines.http.faults import ApiFault, fault_of_status, reading, transport_faults
from niah.engines.http.values import count_or_none, logprob_or_none, odd_counts, part, shown
from niah.errors import BackendUnavailable, CellError, ConfigError, near
from niah.prompts.tokens import Counter, Tokenizer
from niah.types import Prompt

if TYPE_CHECKING:
    from niah.backends.gemini.options import GeminiOptions

_NO_KEY = "none"
_FILTERS = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "LANGUAGE")
_STOPS = {"STOP": "end", "MAX_TOKENS": "length", **dict.fromkeys(_FILTERS, "refused")}


def client_of(
    options: GeminiOptions, base_url: str, key: str | None, async_http: httpx2.AsyncClient | None = None
) -> Any:
    """The SDK's client. Without ``retry_options`` it does not retry; a time limit must be given or it has none."""
    from google import genai
    from google.genai import types

    http = httpx2.Client(**http_arguments(options, base_url))
    client = genai.Client(
        api_key=key or _NO_KEY,
        vertexai=False,
        http_options=types.HttpOptions(
            base_url=base_url,
            # thinking, log-probabilities and counts of all models stand in this version
            api_version="v1beta",
            timeout=int(options.request_timeout_s * 1000),
            httpx_client=http,
            httpx_async_client=async_http,
        ),
    )
    # it is used as long as its counter is
    weakref.finalize(client, http.close)
    return client


def contents_of(call: Call) -> list[dict[str, Any]]:
    contents = [{"role": "user", "parts": [{"text": call.user_text}]}]
    return (
        [*contents, {"role": "model", "parts": [{"text": call.assistant_prefill}]}]
        if call.assistant_prefill
        else contents
    )


class GeminiAdapter:
    """One client for all requests of a session."""

    def __init__(self, options: GeminiOptions, model: str, base_url: str, key: str | None) -> None:
        self._options, self._model, self._base_url = options, model, base_url
        self._http = httpx2.AsyncClient(**http_arguments(options, base_url, is_async=True))
        self._client = client_of(options, base_url, key, self._http)
        self._models: set[str] = set()

    async def close(self) -> None:
        # the SDK leaves a client that it was given alone
        await self._http.aclose()

    def effective(self) -> dict[str, Any]:
        served = ", ".join(sorted(self._models)) or self._model
        return {"api": "generateContent", "server": self._base_url, "served_model": served}

    async def ask(self, call: Call) -> Completion:
        options = self._options
        config: dict[str, Any] = {
            "max_output_tokens": call.answer_tokens + options.reasoning_tokens,
            "automatic_function_calling": {"disable": True},
        }
        if options.temperature is not None:
            config["temperature"] = options.temperature
        if options.reasoning_tokens:
            config["thinking_config"] = {"thinking_budget": options.reasoning_tokens, "include_thoughts": True}
        if options.logprobs:
            config["response_logprobs"] = True
        with gemini_faults(f"the server at {self._base_url}"):
            reply = await self._client.aio.models.generate_content(
                model=self._model, contents=contents_of(call), config=config
            )
            with reading("the reply"):
                completion = read_content(reply.model_dump(mode="json", exclude={"sdk_http_response", "parsed"}))
        self._models |= {completion.model} - {""}
        return completion


def read_content(reply: Mapping[str, Any]) -> Completion:
    """A generated content, read without trust.

    Raises:
        ApiFault: ``bad_reply`` or ``answer_missing``.
    """
    usage = reply.get("usage_metadata")
    thoughts = count_or_none(part(usage, "thoughts_token_count")) or 0
    written = count_or_none(part(usage, "candidates_token_count"))
    counts: dict[str, Any] = {
        "prompt_tokens": count_or_none(part(usage, "prompt_token_count")),
        "output_tokens": None if written is None else written + thoughts,
        "cached_tokens": count_or_none(part(usage, "cached_content_token_count")) or 0,
        "reasoning_tokens": thoughts,
        "model": str(reply.get("model_version") or ""),
        "odd_counts": odd_counts(usage),
    }
    blocked = part(reply, "prompt_feedback", "block_reason")
    if blocked:
        return Completion(text=f"the prompt was blocked: {blocked}", stop="refused", **counts)
    candidates = reply.get("candidates")
    if not isinstance(candidates, list) or not candidates:
        raise ApiFault("answer_missing", "the reply has no candidates", retryable=True)
    first = candidates[0]
    reason = part(first, "finish_reason")
    if not isinstance(reason, str) or reason not in _STOPS:
        raise ApiFault(
            "bad_reply", f"the reply ended by {shown(reason)}, which is no end that is known", retryable=True
        )
    pieces = part(first, "content", "parts") or []
    mean = logprob_or_none(part(first, "avg_logprobs"))
    return Completion(
        text="".join(piece.get("text") or "" for piece in pieces if not piece.get("thought")),
        stop=_STOPS[reason],
        reasoning="".join(piece.get("text") or "" for piece in pieces if piece.get("thought")),
        answer_logprob=mean * written if mean is not None and written else None,
        identity=str(reply.get("response_id") or ""),
        **counts,
    )


@contextmanager
def gemini_faults(service: str) -> Iterator[None]:
    """Turn the SDK's exceptions into ours.

    Raises:
        ApiFault, BackendUnavailable: see ``fault_of_status``.
    """
    from google.genai import errors

    try:
        with transport_faults(service):
            yield
    except errors.APIError as err:
        text = getattr(err.response, "text", "")
        headers = getattr(err.response, "headers", {})
        body = text if isinstance(text, str) and text else str(err)
        # a wrong key is a bad request here
        status = 401 if err.code == 400 and "API_KEY_INVALID" in body else int(err.code or 500)
        raise fault_of_status(status, body, headers, service) from err
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as err:
        # the SDK reads the reply itself, and says what it did not like over several lines
        reason = " ".join(str(err).split())[:200]
        raise ApiFault("bad_reply", f"the reply of {service} cannot be read: {reason}", retryable=True) from err


@dataclass(frozen=True)
class GeminiCounter:
    """Counts by ``countTokens``, which costs nothing but a request."""

    options: GeminiOptions
    model: str
    client: Any
    base_url: str
    tokenizer: Tokenizer
    headroom: float
    is_cheap: bool = False
    name: str = "gemini countTokens"

    def count(self, prompt: Prompt) -> int:
        contents = contents_of(call_of(prompt, self.tokenizer))

        def once() -> int | None:
            with gemini_faults(f"the server at {self.base_url}"):
                return count_or_none(self.client.models.count_tokens(model=self.model, contents=contents).total_tokens)

        try:
            found = with_retries_now(self.options, once)
        except CellError as err:
            raise BackendUnavailable(f"the server does not count tokens: {err}") from err
        if found is None:
            raise BackendUnavailable(f"the server at {self.base_url} does not count tokens as Gemini's API does.")
        return found


def describe(options: GeminiOptions, model: str, base_url: str, key: str | None) -> ModelInfo:
    """Look at the service: its models, and how it counts.

    Raises:
        ConfigError: it has no such model.
        BackendUnavailable: it does not answer, refuses the key, or speaks another API.
    """
    require_reachable(options, base_url)
    client = client_of(options, base_url, key)
    card = _card(options, client, base_url, model)
    tokenizer = tokenizer_for(options.tokenizer, model)
    spare = headroom(tokenizer, model, options.tokenizer)
    return _info(options, model, card, GeminiCounter(options, model, client, base_url, tokenizer, spare))


def sketch(options: GeminiOptions, model: str) -> ModelInfo:
    """What can be completion without asking: the model may not exist, and its counts are estimates."""
    tokenizer = tokenizer_for(options.tokenizer, model)
    counter = LocalCounter(tokenizer, CHAT_OVERHEAD_TOKENS, headroom(tokenizer, model, options.tokenizer))
    return _info(options, model, None, counter)


def _info(options: GeminiOptions, model: str, card: Any, counter: Counter) -> ModelInfo:
    limit = options.context_tokens or count_or_none(getattr(card, "input_token_limit", None))
    return ModelInfo(
        name=model,
        source=model,
        revision=str(getattr(card, "version", None) or "served"),
        tokenizer=tokenizer_for(options.tokenizer, model),
        template=TEXT_TEMPLATE,
        context_tokens=limit,
        reference_kv=None,
        reasoning_tokens=options.reasoning_tokens,
        provider="google" if options.base_url is None else None,
        counter=counter,
        assistant_prefill=options.assistant_prefill == "on",
    )


def _card(options: GeminiOptions, client: Any, base_url: str, model: str) -> Any:
    def once() -> list[Any]:
        with gemini_faults(f"the server at {base_url}"):
            return list(client.models.list(config={"page_size": 1000, "query_base": True}))

    try:
        cards = with_retries_now(options, once)
    except CellError as err:
        raise BackendUnavailable(f"no server answers at {base_url}: {err}. Is it running?") from err
    names = {str(card.name).removeprefix("models/"): card for card in cards}
    if model.removeprefix("models/") in names:
        return names[model.removeprefix("models/")]
    if not names:
        raise BackendUnavailable(
            f"what answers at {base_url} lists no models, so it does not speak Gemini's API: look at backend.base_url."
        )
    served = ", ".join(repr(name) for name in list(names)[:8])
    raise ConfigError(f"the server at {base_url} has no model {model!r}; it serves {served}.{near(model, names)}")
