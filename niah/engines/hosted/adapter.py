"""One request and its reply, whatever the API: what a dialect turns into its own words and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from niah.errors import CellError
from niah.prompts.segments import PARAGRAPH
from niah.prompts.tokens import Tokenizer
from niah.types import Prompt

# more than any context; larger numbers are no counts, and some do not even fit into a column of a table
MOST_TOKENS = 10**12
_COUNT_ENDS = ("tokens", "token_count")
_SHOWN_CHARACTERS = 200
_LEAST_LOGPROB, _ROUNDING = -1e6, 1e-3


@dataclass(frozen=True, slots=True)
class Call:
    """One prompt as text.

    Attributes:
        context: instruction, haystack and needles: the same for all questions of a context, so it is worth caching.
        question: what follows, with its blank line.
        prefix: the start of the answer, to be put into the model's mouth; empty where that is not done.
        answer_tokens: that the answer may take.
        is_cacheable: whether processed prefixes may be used again.
    """

    context: str
    question: str
    prefix: str
    answer_tokens: int
    is_cacheable: bool = True

    @property
    def user_text(self) -> str:
        return self.context + self.question


@dataclass(frozen=True, slots=True)
class Said:
    """What a reply holds; None for what it does not tell.

    Attributes:
        stop: ``end``, ``length`` (budget used up) or ``refused``.
        identity: of this reply, when the service names it: the same one twice is no second answer.
        first_token_s: seconds until the first of a streamed reply.
        odd_counts: names of counts in the reply that are none, and were left out.
    """

    text: str
    stop: str
    reasoning: str = ""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    answer_logprob: float | None = None
    identity: str = ""
    first_token_s: float | None = None
    model: str = ""
    odd_counts: tuple[str, ...] = ()


class Dialect(Protocol):
    """An API as a session uses it."""

    async def ask(self, call: Call) -> Said:
        """One request, asked once.

        Raises:
            ApiFault: it failed; whether it is worth asking again stands in it.
            BackendUnavailable: every further request would fail like this one.
        """
        ...

    def effective(self) -> dict[str, Any]: ...

    async def close(self) -> None: ...


def call_of(prompt: Prompt, tokenizer: Tokenizer, *, is_cacheable: bool = True, context: str | None = None) -> Call:
    """The text of a prompt, taken back from its tokens.

    Our template for texts is a line break between question and answer, which a server's own template replaces: what is
    sent is the decoded context, the question, and the start of the answer. The count is made of just this.

    Args:
        context: the decoded context, where it is known from another prompt of it.

    Raises:
        CellError: ``needle_lost``: a needle does not stand in the text that would be sent.
    """
    if context is None:
        context = context_of(prompt, tokenizer)
    case = prompt.case
    return Call(context, PARAGRAPH + case.question, case.answer_prefix, prompt.answer_budget, is_cacheable)


def context_of(prompt: Prompt, tokenizer: Tokenizer) -> str:
    """The part that all prompts of a context share, as text; ``call_of`` says what is raised."""
    text = tokenizer.decode(prompt.context)
    for needle in prompt.case.needles:
        if needle.text not in text:
            raise CellError("needle_lost", f"the needle {needle.text!r} does not stand in the text that would be sent")
    return text


def whole(value: Any) -> int | None:
    """A count in a reply; None for what is none: missing, negative, text, beyond all that a request can hold."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if is_count else None


def logprob_of(value: Any) -> float | None:
    """A natural log-probability in a reply; None for what is none: text, not finite, above zero."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # rounding may leave a hair above zero
    return float(value) if _LEAST_LOGPROB <= value <= _ROUNDING else None


def odd_counts(usage: Any) -> tuple[str, ...]:
    """Names of the token counts in a reply that are there and are no counts."""
    if usage is None:
        return ()
    if not isinstance(usage, Mapping):
        return ("usage",)
    named = [name for name in usage if isinstance(name, str) and name.endswith(_COUNT_ENDS)]
    return tuple(name[:40] for name in named if usage[name] is not None and whole(usage[name]) is None)


def shown(value: Any) -> str:
    """A value of a reply as it stands in a sentence."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return repr(text[:_SHOWN_CHARACTERS] + " …") if len(text) > _SHOWN_CHARACTERS else repr(value)


def part(data: Any, *path: str) -> Any:
    """A value deep in a reply, None when any step of the way is missing."""
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data
