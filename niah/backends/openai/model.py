"""The description of a model behind OpenAI's API: found on the server, with its tokenizer and token counter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from niah.backends.openai.server import Served, ServerCounter, ServerQueries, find_served
from niah.engines.base import ModelInfo
from niah.engines.hosted.sdk import require_reachable
from niah.engines.hosted.tokenizer import CHAT_OVERHEAD_TOKENS, TEXT_TEMPLATE, LocalCounter, headroom, tokenizer_for
from niah.prompts.tokens import COMPLETION, Counter

if TYPE_CHECKING:
    from niah.backends.openai.options import OpenAIOptions


def describe(options: OpenAIOptions, model: str, base_url: str, key: str | None) -> ModelInfo:
    """Look at the server: its models, its longest prompt, how it counts.

    Raises:
        ConfigError: it has no such model.
        BackendUnavailable: it does not answer, refuses the key, or speaks another API.
    """
    require_reachable(options, base_url)
    talk = ServerQueries(base_url, key, options)
    return _info(options, model, find_served(talk, model, options), talk)


def sketch(options: OpenAIOptions, model: str) -> ModelInfo:
    """What can be completion without asking: the model may not exist, and its counts are estimates."""
    return _info(options, model, Served(model, "", options.context_tokens, ""), None)


def _info(options: OpenAIOptions, model: str, served: Served, talk: ServerQueries | None) -> ModelInfo:
    tokenizer = tokenizer_for(options.tokenizer, model)
    spare = headroom(tokenizer, model, options.tokenizer)
    is_completion = options.api == "completions"
    counter: Counter
    if talk is not None and served.counts:
        counter = ServerCounter(talk, served, tokenizer, spare, is_completion)
    else:
        counter = LocalCounter(tokenizer, 0 if is_completion else CHAT_OVERHEAD_TOKENS, spare)
    context = served.context_tokens
    return ModelInfo(
        name=model,
        source=served.model,
        revision="served",
        tokenizer=tokenizer,
        template=COMPLETION if is_completion else TEXT_TEMPLATE,
        # reasoning comes on top of every length
        context_tokens=None if context is None else context - options.reasoning_tokens,
        reference_kv=None,
        numerics={"server": served.family},
        reasoning_tokens=options.reasoning_tokens,
        provider="openai" if options.base_url is None else None,
        counter=counter,
        assistant_prefill=_prefills(options, served),
    )


def served_of(info: ModelInfo) -> Served:
    """What ``describe`` found, for the session."""
    if isinstance(info.counter, ServerCounter):
        return info.counter.served
    return Served(info.source, info.numerics["server"], info.context_tokens, "")


def _prefills(options: OpenAIOptions, served: Served) -> bool:
    if options.assistant_prefill != "auto":
        return options.assistant_prefill == "on"
    if options.api == "completions":
        return True
    return options.api == "chat" and served.continues and not options.reasoning_tokens
