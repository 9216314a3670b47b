"""One needle moved through the haystack: the classic test, also with a needle, question and answer of your own."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import model_validator

from niah.errors import ConfigError
from niah.prompts.normalize import is_settled
from niah.prompts.segments import count_whole
from niah.prompts.task import Collides, ContextLayout, TaskOptions, TaskPlugin
from niah.prompts.words import Values, draw_keys, draw_values
from niah.tasks.multikey import ask, needle_text
from niah.types import Case, Needle

_INSTRUCTION = "The text below hides one fact. Keep it in mind: after the text you will be asked about it."


def _holds(text: str, answer: str) -> bool:
    return count_whole(text.lower(), answer.strip().lower()) > 0


class SingleOptions(TaskOptions):
    """Options of ``single``.

    Attributes:
        needle, question, answer: your own fact; all three or none. The answer must stand in the needle.
        values: what is hidden otherwise: a 7-digit number, a rare word or a UUID.
        answer_prefix: begin the answer for the model (an assistant prefill); not with a question of your own.
    """

    needle: str | None = None
    question: str | None = None
    answer: str | None = None
    values: Values = "number"
    answer_prefix: bool = True

    @model_validator(mode="after")
    def _own_fact_is_whole(self) -> SingleOptions:
        given = {"needle": self.needle, "question": self.question, "answer": self.answer}
        missing = [name for name, text in given.items() if text is None or not text.strip()]
        if 0 < len(missing) < len(given) or (missing and any(text is not None for text in given.values())):
            raise ValueError(f"needle, question and answer go together; missing or empty: {', '.join(missing)}")
        if self.needle and self.question and self.answer:
            if not _holds(self.needle, self.answer):
                raise ValueError(f"the answer {self.answer!r} does not stand in the needle {self.needle!r}")
            if _holds(self.question, self.answer):
                raise ValueError(f"the answer {self.answer!r} stands in the question {self.question!r}")
            if _holds(_INSTRUCTION, self.answer):
                raise ValueError(f"the answer {self.answer!r} stands in the task's instruction {_INSTRUCTION!r}")
        return self


def layouts(options: SingleOptions, depths: Sequence[float]) -> list[ContextLayout]:  # noqa: ARG001 (the plugin's shape)
    """A context for each depth."""
    return [ContextLayout((depth,)) for depth in sorted(depths)]


def make(options: SingleOptions, seed: int, layout: ContextLayout, collides: Collides) -> list[Case]:
    """The case of each asked depth; the same seed hides the same fact wherever it lies.

    Raises:
        ConfigError: your own needle or answer stands in the haystack already, or every drawn one does.
    """
    if options.needle and options.question and options.answer:
        return [_own(options.needle, options.question, options.answer, depth, collides) for depth in layout.asked]
    key = draw_keys(1, seed, collides)[0]
    value = draw_values(options.values, 1, seed, collides)[0]
    text = needle_text(options.values, key, value)
    needles = [Needle(depth, text, key, value) for depth in layout.asked]
    return [ask(options.values, (needle,), needle, answer_prefix=options.answer_prefix) for needle in needles]


def _own(needle: str, question: str, answer: str, depth: float, collides: Collides) -> Case:
    text, value = needle.strip(), answer.strip()
    for what, words in (("needle", text), ("answer", value)):
        if collides(words):
            raise ConfigError(
                f"the {what} {words!r} stands in the haystack already; change task.single.{what} or the haystack."
            )
    return Case(
        depth=depth,
        needles=(Needle(depth, text, "the fact", value),),
        instruction=_INSTRUCTION,
        question=question.strip(),
        answer_prefix="",
        expected=(value,),
        gold=value,
        distractors=(),
        scorer="exact",
    )


PLUGIN = TaskPlugin(
    name="single",
    summary="one needle at one depth after the other, or a fact of your own",
    version=1,
    options=SingleOptions,
    layouts=layouts,
    make=make,
    is_complete=is_settled,
)
