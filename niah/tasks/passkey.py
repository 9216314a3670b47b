"""A pass key in the haystack: a short number that is asked for without a key to tell it by."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pydantic import Field

from niah.grid import seed_from
from niah.prompts.normalize import is_settled
from niah.prompts.task import Collides, ContextLayout, TaskOptions, TaskPlugin
from niah.prompts.words import draw_free, draw_number
from niah.types import Case, Needle

_INSTRUCTION = (
    "Somewhere in the unimportant text below a pass key is given. Find it and keep it in mind: after the text you will "
    "be asked for it."
)


class PasskeyOptions(TaskOptions):
    """Options of ``passkey``.

    Attributes:
        digits: of the pass key, 5 to 7.
        answer_prefix: begin the answer for the model (an assistant prefill).
    """

    digits: int = Field(default=5, ge=5, le=7)
    answer_prefix: bool = True


def layouts(options: PasskeyOptions, depths: Sequence[float]) -> list[ContextLayout]:  # noqa: ARG001 (the plugin's shape)
    """A context for each depth."""
    return [ContextLayout((depth,)) for depth in sorted(depths)]


def make(options: PasskeyOptions, seed: int, layout: ContextLayout, collides: Collides) -> list[Case]:
    """The case of each asked depth; the same seed hides the same pass key wherever it lies.

    Raises:
        ConfigError: every pass key that was tried stands in the haystack.
    """
    rng = Random(seed_from("passkey", options.digits, seed))
    value = draw_free(lambda: draw_number(options.digits, rng), collides, "pass keys")
    text = f"The pass key is {value}. Remember it."
    return [
        Case(
            depth=depth,
            needles=(Needle(depth, text, "pass key", value),),
            instruction=_INSTRUCTION,
            question="What is the pass key given in the text above?",
            answer_prefix="The pass key is" if options.answer_prefix else "",
            expected=(value,),
            gold=f" {value}" if options.answer_prefix else value,
            distractors=(),
            scorer="exact",
        )
        for depth in layout.asked
    ]


PLUGIN = TaskPlugin(
    name="passkey",
    summary="a short pass key, asked for without a key to tell it by",
    version=1,
    options=PasskeyOptions,
    layouts=layouts,
    make=make,
    is_complete=is_settled,
)
