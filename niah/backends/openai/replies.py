"""Completions from OpenAI's three reply formats: what is missing or odd is a fault, never an empty answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from niah.engines.hosted.adapter import Completion
from niah.engines.http.faults import ApiFault
from niah.engines.http.values import count_or_none, logprob_or_none, odd_counts, part, shown

_STOPS = {"stop": "end", "eos": "end", "length": "length", "max_tokens": "length", "content_filter": "refused"}


def read_chat(reply: Mapping[str, Any], identity: str) -> Completion:
    """A chat completion.

    Raises:
        ApiFault: ``bad_reply``, or ``answer_missing`` when the text stands in a field of another API.
    """
    choice = _first_choice(reply)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise _misplaced(choice, "choices[0].message")
    text = text_of(message.get("content"))
    reasoning = text_of(message.get("reasoning_content") or message.get("reasoning"))
    refusal = text_of(message.get("refusal"))
    if not text and not reasoning and not refusal:
        _refuse_elsewhere(choice, reply)
    return _completion(
        reply, identity, text or refusal, "refused" if refusal else _stop(choice), reasoning, _logprob(choice)
    )


def read_completion(reply: Mapping[str, Any], identity: str) -> Completion:
    """A completion; see ``read_chat``."""
    choice = _first_choice(reply)
    text = choice.get("text")
    if not isinstance(text, str):
        raise _misplaced(choice, "choices[0].text")
    values = part(choice, "logprobs", "token_logprobs")
    logprob = _sum(values) if isinstance(values, list) else _logprob(choice)
    return _completion(reply, identity, text, _stop(choice), "", logprob)


def read_response(reply: Mapping[str, Any], identity: str) -> Completion:
    """A reply of the responses API: a list of items, of which messages are the answer and reasoning is not."""
    items = reply.get("output")
    if not isinstance(items, list):
        raise _misplaced(reply, "output")
    text = reasoning = refusal = ""
    logprobs: list[Any] = []
    for item in items:
        for piece in _pieces(item, "content") + (_pieces(item, "summary") if part(item, "type") == "reasoning" else []):
            words = text_of(piece.get("text"))
            if part(item, "type") == "reasoning":
                reasoning += words
            elif piece.get("type") == "refusal":
                refusal += text_of(piece.get("refusal"))
            else:
                text += words
                logprobs += [entry.get("logprob") for entry in _pieces(piece, "logprobs")]
    status, cause = reply.get("status"), part(reply, "incomplete_details", "reason")
    if status == "failed":
        raise ApiFault("server_error", f"the response failed: {shown(part(reply, 'error', 'message'))}", retryable=True)
    stop = "end"
    if status == "incomplete":
        stop = "refused" if cause == "content_filter" else "length"
    return _completion(reply, identity, text or refusal, "refused" if refusal else stop, reasoning, _sum(logprobs))


def _first_choice(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise _misplaced(reply, "choices")
    return choices[0]


def _misplaced(found: Mapping[str, Any], wanted: str) -> ApiFault:
    error = part(found, "error", "message") or found.get("error")
    if error:
        return ApiFault(
            "server_error", f"the reply holds an error instead of an answer: {shown(error)}", retryable=True
        )
    names = ", ".join(sorted(map(str, found))) or "nothing"
    return ApiFault("answer_missing", f"the reply has no {wanted}; it holds {names}", retryable=True)


def _refuse_elsewhere(choice: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
    """An answer that stands in another API's field is not an empty answer."""
    for where, value in (
        ("choices[0].text", choice.get("text")),
        ("choices[0].delta", part(choice, "delta", "content")),
        ("output_text", reply.get("output_text")),
        ("response", reply.get("response")),
    ):
        if value:
            raise ApiFault("answer_missing", f"the answer stands in {where} and not in the message", retryable=True)


def _pieces(item: Any, field: str) -> list[Mapping[str, Any]]:
    found = item.get(field) if isinstance(item, Mapping) else None
    return [piece for piece in found if isinstance(piece, Mapping)] if isinstance(found, list) else []


def text_of(value: Any) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(value, list):
        return "".join(text_of(part(piece, "text")) for piece in value)
    return value if isinstance(value, str) else ""


def _stop(choice: Mapping[str, Any]) -> str:
    finish = choice.get("finish_reason")
    if not isinstance(finish, str) or finish not in _STOPS:
        raise ApiFault(
            "bad_reply", f"the reply ended by {shown(finish)}, which is no end that is known", retryable=True
        )
    return _STOPS[finish]


def _logprob(choice: Mapping[str, Any]) -> float | None:
    entries = part(choice, "logprobs", "content")
    if not isinstance(entries, list):
        return None
    return _sum([part(entry, "logprob") for entry in entries])


def _sum(values: list[Any]) -> float | None:
    known = [found for value in values if (found := logprob_or_none(value)) is not None]
    return sum(known) if known and len(known) == len(values) else None


def _completion(
    reply: Mapping[str, Any], identity: str, text: str, stop: str, reasoning: str, logprob: float | None
) -> Completion:
    usage = reply.get("usage")
    details = part(usage, "prompt_tokens_details") or part(usage, "input_tokens_details")
    out_details = part(usage, "completion_tokens_details") or part(usage, "output_tokens_details")
    prompt = count_or_none(part(usage, "prompt_tokens"))
    output = count_or_none(part(usage, "completion_tokens"))
    return Completion(
        text=text,
        stop=stop,
        reasoning=reasoning,
        prompt_tokens=count_or_none(part(usage, "input_tokens")) if prompt is None else prompt,
        output_tokens=count_or_none(part(usage, "output_tokens")) if output is None else output,
        cached_tokens=count_or_none(part(details, "cached_tokens")) or 0,
        reasoning_tokens=count_or_none(part(out_details, "reasoning_tokens")) or 0,
        answer_logprob=logprob,
        # without an id two cells may well have the same reply, word for word
        identity=identity if reply.get("id") else "",
        model=text_of(reply.get("model")),
        odd_counts=odd_counts(usage),
    )
