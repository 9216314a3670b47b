"""One request and its reply, whatever the API: what a dialect turns into its own words and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from niah.errors import CellError
from niah.haystacks.segments import PARAGRAPH
from niah.tokens import Tokenizer
from niah.types import Prompt


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
    """A count in a reply; None for what is none: missing, negative, text."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def part(data: Any, *path: str) -> Any:
    """A value deep in a reply, None when any step of the way is missing."""
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data
