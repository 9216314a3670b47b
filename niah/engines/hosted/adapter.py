"""One request to a hosted API and its completion, and the adapter that each API brings for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from niah.errors import CellError
from niah.prompts.segments import PARAGRAPH
from niah.prompts.tokens import Tokenizer
from niah.types import Prompt


@dataclass(frozen=True, slots=True)
class Call:
    """One prompt as text.

    Attributes:
        context: instruction, haystack and needles: the same for all questions of a context, so it is worth caching.
        question: what follows, with its blank line.
        assistant_prefill: the start of the answer, sent as the assistant's words; empty where that is not done.
        answer_tokens: that the answer may take.
        is_cacheable: whether processed prefixes may be used again.
    """

    context: str
    question: str
    assistant_prefill: str
    answer_tokens: int
    is_cacheable: bool = True

    @property
    def user_text(self) -> str:
        return self.context + self.question


@dataclass(frozen=True, slots=True)
class Completion:
    """What a reply holds; None for what the service does not tell.

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


class ApiAdapter(Protocol):
    """An API as a session uses it: turns calls into its requests and replies into completions."""

    async def ask(self, call: Call) -> Completion:
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
