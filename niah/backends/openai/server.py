"""Queries to an OpenAI-compatible server before a run: its models, context length, and token counts."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from niah.engines.hosted.adapter import Call, call_of
from niah.engines.hosted.options import ApiOptions
from niah.engines.hosted.retries import with_retries_now
from niah.engines.hosted.sdk import http_arguments
from niah.engines.http.faults import ApiFault, document, fault_of_status, transport_faults
from niah.engines.http.values import count_or_none, part
from niah.errors import BackendUnavailable, CellError, ConfigError, near
from niah.prompts.tokens import Tokenizer
from niah.types import Prompt

# servers that continue an assistant's message that stands last, when the request says so
_CONTINUES = ("vllm", "sglang", "llamacpp")
CONTINUE: dict[str, Any] = {"continue_final_message": True, "add_generation_prompt": False}
_NEAR_MODELS = 8


@dataclass(frozen=True, slots=True)
class Served:
    """A model on a server.

    Attributes:
        family: ``vllm``, ``llamacpp``, ``sglang`` …, by the owner that the server's list of models names.
        counts: ``messages`` (``/tokenize`` takes messages), ``text`` (``/apply-template`` and ``/tokenize``), or
            nothing.
    """

    model: str
    family: str
    context_tokens: int | None
    counts: str

    @property
    def continues(self) -> bool:
        return self.family in _CONTINUES


class ServerQueries:
    """Requests to a server before and beside a run; faults that may pass are retried, as for cells."""

    def __init__(self, base_url: str, key: str | None, options: ApiOptions) -> None:
        self.base_url = base_url.rstrip("/")
        self.root = self.base_url.removesuffix("/v1")
        self._options = options
        self._http = httpx2.Client(**http_arguments(options, base_url))
        if key:
            self._http.headers["Authorization"] = f"Bearer {key}"
        # it is used as long as its counter is
        weakref.finalize(self, self._http.close)

    def get(self, url: str) -> dict[str, Any]:
        return self._ask("GET", url, None)

    def post(self, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._ask("POST", url, body)

    def has(self, url: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """The reply of a path that a server need not have."""
        try:
            return self.post(url, body)
        except (BackendUnavailable, CellError):
            return None

    def _ask(self, method: str, url: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        def once() -> dict[str, Any]:
            with transport_faults(url):
                reply = self._http.request(method, url, json=body)
            if reply.status_code >= 300:
                raise fault_of_status(reply.status_code, reply.text, reply.headers, f"the server at {self.root}")
            return document(reply.text, url)

        return with_retries_now(self._options, once)


def find_served(talk: ServerQueries, model: str, options: ApiOptions) -> Served:
    """The model on the server.

    Raises:
        ConfigError: the server has no such model; its own are named.
        BackendUnavailable: nothing answers, the key is refused, or what answers speaks another language.
    """
    try:
        listed = talk.get(f"{talk.base_url}/models")
    except ApiFault as err:
        raise BackendUnavailable(f"no server answers at {talk.base_url}: {err}. Is it running?") from err
    cards = listed.get("data")
    if not isinstance(cards, list) or not all(isinstance(card, dict) and "id" in card for card in cards):
        raise BackendUnavailable(
            f"what answers at {talk.base_url}/models lists no models, so it does not speak OpenAI's API: base_url "
            "should end in /v1 with most servers, and other APIs have other backends (anthropic, gemini)."
        )
    card = next((card for card in cards if card["id"] == model), None)
    if card is None:
        raise _unknown(model, [str(card["id"]) for card in cards], talk.base_url)
    family = str(card.get("owned_by") or "")
    context = options.context_tokens or count_or_none(card.get("max_model_len"))
    if context is None and family == "llamacpp":
        context = _slot_context(talk)
    return Served(str(card["id"]), family, context, _counts(talk, model))


def _unknown(model: str, names: list[str], address: str) -> ConfigError:
    shown = names
    if len(names) > _NEAR_MODELS:
        import difflib

        shown = difflib.get_close_matches(model, names, n=_NEAR_MODELS, cutoff=0.2) or names[:_NEAR_MODELS]
    served = ", ".join(repr(name) for name in shown) or "none"
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    hint = near(model, names) if len(names) > 1 else ""
    return ConfigError(f"the server at {address} has no model {model!r}; it serves {served}{more}.{hint}")


def _slot_context(talk: ServerQueries) -> int | None:
    """llama.cpp shares its context between slots; this is one slot's."""
    try:
        return count_or_none(part(talk.get(f"{talk.root}/props"), "default_generation_settings", "n_ctx"))
    except (BackendUnavailable, CellError):
        return None


def _counts(talk: ServerQueries, model: str) -> str:
    probe = [{"role": "user", "content": "One."}]
    reply = talk.has(f"{talk.root}/tokenize", {"model": model, "messages": probe})
    if reply is not None and count_or_none(reply.get("count")):
        return "messages"
    reply = talk.has(f"{talk.root}/tokenize", {"content": "One."})
    if reply is None or not isinstance(reply.get("tokens"), list) or not reply["tokens"]:
        return ""
    templated = talk.has(f"{talk.root}/apply-template", {"messages": probe})
    return "text" if templated is not None and isinstance(templated.get("prompt"), str) else ""


@dataclass(frozen=True)
class ServerCounter:
    """Counts by the server's own ``/tokenize``, template and all."""

    talk: ServerQueries
    served: Served
    tokenizer: Tokenizer
    headroom: float
    is_completion: bool

    @property
    def name(self) -> str:
        return f"{self.served.family or 'server'} /tokenize"

    @property
    def is_cheap(self) -> bool:
        return True

    def count(self, prompt: Prompt) -> int:
        call = call_of(prompt, self.tokenizer)
        try:
            return self._messages(call) if self.served.counts == "messages" else self._text(call)
        except CellError as err:
            raise BackendUnavailable(f"the server does not count tokens any more: {err}") from err

    def _messages(self, call: Call) -> int:
        body: dict[str, Any] = {"model": self.served.model}
        if self.is_completion:
            body["prompt"] = call.user_text + call.assistant_prefill
        else:
            body |= {"messages": messages_of(call), **(CONTINUE if call.assistant_prefill else {})}
        return int(self.talk.post(f"{self.talk.root}/tokenize", body)["count"])

    def _text(self, call: Call) -> int:
        text = call.user_text + call.assistant_prefill
        if not self.is_completion:
            body = {"messages": messages_of(call), **(CONTINUE if call.assistant_prefill else {})}
            text = self.talk.post(f"{self.talk.root}/apply-template", body)["prompt"]
        body = {"content": text, "add_special": True, "parse_special": True}
        return len(self.talk.post(f"{self.talk.root}/tokenize", body)["tokens"])


def messages_of(call: Call) -> list[dict[str, Any]]:
    """One user message, and the start of the answer as the assistant's where there is one."""
    messages = [{"role": "user", "content": call.user_text}]
    return [*messages, {"role": "assistant", "content": call.assistant_prefill}] if call.assistant_prefill else messages
