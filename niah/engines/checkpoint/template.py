"""Text before and after the user's text: the model's chat template, rendered once, or plain completion.

The template is rendered by transformers around a probe, so whatever it writes (a system message, a date, the header of
the reply) is what the library's ``apply_chat_template`` writes. A template that prints the date is rendered at one day,
so that the same question is the same prompt on every day; reasoning is switched off or its block closed, since an
answer budget of a few tokens would be spent on it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from niah.errors import ConfigError
from niah.prompts.tokens import Template

# the day that a template prints by default: fixed, so that prompts do not depend on the clock
DEFAULT_DATE = "2025-01-01"
_MARK = "NIAH-CONTENT"
# text that a template must not change: case, quotes, brackets, line breaks, runs of blanks, other scripts
_PROBE = f"{_MARK} \"Two\"\t'three' <b>&amp;</b> {{{{4}}}} [5] \\n é 日本\n\n  Six|seven; {_MARK}"
# what templates call their switch for reasoning, and the value that turns it off
_SWITCHES: Mapping[str, Any] = {
    "enable_thinking": False,
    "thinking": False,
    "enable_reasoning": False,
    "reasoning": False,
    "thinking_budget": 0,
}
_THOUGHT = "(?:think(?:ing)?|thoughts?|reason(?:ing)?|analysis|reflection|scratchpad|cot)"
# the opening of a reasoning block, and how its closing is spelt
_OPENINGS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(rf"<((?:\w+:)?{_THOUGHT})(?:\s[^<>]*)?>", re.IGNORECASE), r"</\1>"),
    (re.compile(rf"\[({_THOUGHT})\]", re.IGNORECASE), r"[/\1]"),
    (re.compile(rf"◁({_THOUGHT})▷", re.IGNORECASE), r"◁/\1▷"),
    (re.compile(rf"<\|({_THOUGHT})\|>", re.IGNORECASE), r"<|/\1|>"),
    (re.compile(r"<\|START_THINKING\|>"), "<|END_THINKING|>"),
    (re.compile(rf"<\|(?:start|begin)_of_({_THOUGHT})\|>"), r"<|end_of_\1|>"),
    (re.compile(rf"<\|({_THOUGHT})_start\|>"), r"<|\1_end|>"),
    (re.compile(r"<\|inner_prefix\|>"), "<|inner_suffix|>"),
    (re.compile(r"<\|channel>\w+"), "<channel|>"),
)
# the channels of harmony (gpt-oss): the reply's header is open until a channel is named
_HARMONY_HEADER = "<|start|>assistant"
_HARMONY_FINAL = "<|channel|>final<|message|>"
_HARMONY_OPEN = re.compile(r"(<\|\w+\|>assistant\s*)?<\|channel\|>(?!final)\w+(<\|message\|>)?[^<]*$")
# errors of a template's own code in Jinja and Python
_FAULTS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)


def read_template(
    wanted: str, tokenizer: Any, model: str, *, day: str | None = None, as_engine: bool = False
) -> Template:
    """The template of a model, by what its own files say.

    Args:
        wanted: ``auto`` (chat where the model has a template), ``chat`` or ``completion``.
        tokenizer: transformers' own, of a fast kind.
        day: ISO date that a dated template prints; None is ``DEFAULT_DATE``.
        as_engine: tokens that begin a text go before a chat template too where it writes none itself, as llama.cpp
            does; transformers leaves a chat to its template alone.

    Raises:
        ConfigError: no such template, one that fails or changes the user's text, or a date that is none.
    """
    moment = _midnight(day)
    has_chat = bool(getattr(tokenizer, "chat_template", None))
    if wanted == "chat" and not has_chat:
        raise ConfigError(f"the model {model!r} has no chat template. Use --set backend.template=completion.")
    start = starting_text(tokenizer)
    if wanted == "completion" or not has_chat:
        return Template("completion", "", "", start=start, notes=(("prompt.start", start or "none"),))
    chat = _Chat(tokenizer, model, moment)
    prefix, suffix = chat.around()
    suffix, lead, thinking = _without_thinking(chat, suffix)
    own = next((word for word in _starts(tokenizer, start) if prefix.startswith(word)), "")
    added = start if as_engine and not own else ""
    notes = [("prompt.start", own or added or "none")]
    notes += [("prompt.thinking", thinking)] if thinking else []
    notes += [("prompt.date", moment.date().isoformat())] if chat.is_dated else []
    return Template(
        "chat",
        prefix,
        suffix,
        start=added,
        date=moment.date().isoformat() if chat.is_dated else "",
        lead=lead,
        notes=tuple(notes),
    )


def starting_text(tokenizer: Any) -> str:
    """Special tokens that the tokenizer puts before a plain text, as text; those after it are not for a prompt."""
    bare = list(tokenizer("x", add_special_tokens=False).input_ids)
    whole = list(tokenizer("x").input_ids)
    for at in range(len(whole) - len(bare) + 1):
        if whole[at : at + len(bare)] == bare:
            return "".join(tokenizer.convert_ids_to_tokens(whole[:at]))
    return ""


def _starts(tokenizer: Any, start: str) -> list[str]:
    """Special tokens that a chat template may begin a text with, longest first."""
    found = {start, str(getattr(tokenizer, "bos_token", None) or "")}
    return sorted((word for word in found if word), key=len, reverse=True)


def _midnight(day: str | None) -> dt.datetime:
    try:
        return dt.datetime.combine(dt.date.fromisoformat(day or DEFAULT_DATE), dt.time())
    except ValueError as err:
        raise ConfigError(f"backend.date {day!r} is no date: write it as {DEFAULT_DATE}.") from err


@dataclass
class _Chat:
    """One model's chat template at one day.

    Attributes:
        in_parts: whether a message's content is given as a list of parts, which some templates ask for.
        switches: template variables that turn reasoning off.
        is_dated: whether it has read the date so far.
    """

    tokenizer: Any
    model: str
    moment: dt.datetime
    in_parts: bool = False
    switches: dict[str, Any] = field(default_factory=dict)
    is_dated: bool = False

    def around(self) -> tuple[str, str]:
        """Text before and after the user's content.

        Raises:
            ConfigError: the template fails, or hides, changes or repeats the user's text.
        """
        found, faults = None, []
        for self.in_parts in (False, True):
            try:
                found = self._split()
            except ConfigError as err:
                faults.append(err)
            if found is not None:
                break
        if found is None and len(faults) == 2:
            raise faults[0]
        if found is not None:
            self.switches = self._find_switches(found)
            found = self._split()
        if found is None or self.render(_PROBE) != _PROBE.join(found):
            raise ConfigError(
                f"the chat template of {self.model!r} hides or changes the user's text, so that needles would not "
                "arrive as they are. Use --set backend.template=completion."
            )
        return found

    def _split(self) -> tuple[str, str] | None:
        before, found, after = self.render(_MARK).partition(_MARK)
        return (before, after) if found and _MARK not in after else None

    def _find_switches(self, without: tuple[str, str]) -> dict[str, Any]:
        """The switches that the template reads and that change its output."""
        source = str(self.tokenizer.get_chat_template())
        found: dict[str, Any] = {}
        for name, value in _SWITCHES.items():
            # a variable, not a message's field or a word in a text
            if re.search(rf"(?<![\w.'\"]){name}(?![\w'\"])", source) is None:
                continue
            self.switches = {name: value}
            try:
                changed = self._split()
            except ConfigError:
                changed = None  # a template that takes no such value is left as it is
            if changed not in (None, without):
                found[name] = value
        return found

    def render(self, content: str) -> str:
        """Render one user message.

        Raises:
            ConfigError: the template raises, as some do without a system message.
        """
        from jinja2 import TemplateError

        said: Any = [{"type": "text", "text": content}] if self.in_parts else content
        message = [{"role": "user", "content": said}]
        try:
            with self._frozen():
                text = self.tokenizer.apply_chat_template(
                    message, tokenize=False, add_generation_prompt=True, **self.switches
                )
        except (TemplateError, *_FAULTS) as err:
            reason = " ".join(str(err).split()) or type(err).__name__
            raise ConfigError(
                f"the chat template of {self.model!r} cannot be used for a single question ({reason[:200]}): "
                "use --set backend.template=completion."
            ) from err
        return str(text)

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        """A fixed clock for templates (``strftime_now``) that records whether it was read."""
        from transformers.utils import chat_template_utils

        chat, library = self, chat_template_utils

        class Clock(dt.datetime):
            @classmethod
            def now(cls, tz: dt.tzinfo | None = None) -> Any:
                chat.is_dated = True
                return chat.moment.replace(tzinfo=tz)

        original = library.datetime
        library.datetime = Clock
        try:
            yield
        finally:
            library.datetime = original


def _without_thinking(chat: _Chat, suffix: str) -> tuple[str, bool, str]:
    """The suffix with no reasoning left open: (suffix, whether an answer may be begun after it, what was done)."""
    done = [f"{name}={value}" for name, value in chat.switches.items()]
    suffix, closed, lead = _closed(chat.tokenizer, suffix)
    return suffix, lead, ", ".join([*done, *([closed] if closed else [])])


def _closed(tokenizer: Any, suffix: str) -> tuple[str, str, bool]:
    """(suffix, what was done in words, whether an answer may be begun)."""
    if suffix.endswith(_HARMONY_HEADER) and "<|channel|>" in str(tokenizer.get_chat_template()):
        return suffix + _HARMONY_FINAL, "final channel opened", True
    if (harmony := _HARMONY_OPEN.search(suffix)) is not None:
        message, header = "" if harmony[2] else "<|message|>", harmony[1] or _HARMONY_HEADER
        return f"{suffix}{message}<|end|>{header}{_HARMONY_FINAL}", "analysis closed, final channel opened", True
    found = [(match, closing) for pattern, closing in _OPENINGS for match in pattern.finditer(suffix)]
    if not found:
        return suffix, "", True
    match, closing = max(found, key=lambda pair: pair[0].start())
    word, rest = match.expand(closing), suffix[match.end() :]
    # any other mark after it closes it, or begins another turn: then it was only spoken of
    if re.search(r"[<\[◁]", rest) is not None:
        return suffix, "", True
    if _ids(tokenizer, match[0]) == 1 and _ids(tokenizer, word) != 1:
        # the opening is a token of its own and what is taken for its closing is not: better no answer in its midst
        return suffix, f"{match[0]} left open, answer prefix left out", False
    # "<think>\\n" becomes "<think>\\n\\n</think>\\n\\n", which is how models that can answer at once are taught to
    line = "\n" if "\n" in rest else ""
    return f"{suffix}{line}{word}{line * 2}", f"{match[0]} closed", True


def _ids(tokenizer: Any, text: str) -> int:
    return len(tokenizer(text, add_special_tokens=False).input_ids)
