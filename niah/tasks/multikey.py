"""Many keyed needles in one context, one question each: a single prefill answers every depth."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from niah.errors import ConfigError
from niah.prompts.normalize import is_settled
from niah.prompts.task import Collides, ContextLayout, TaskOptions, TaskPlugin
from niah.prompts.words import CITIES, VALUE_WORDS, Values, draw_keys, draw_values
from niah.types import Case, Needle

MIN_KEYS = 8


class MultikeyOptions(TaskOptions):
    """Options of ``multikey``.

    Attributes:
        keys: needles in a context; None takes the number of depths, at least 8.
        values: what is hidden: 7-digit numbers, rare words or UUIDs.
        answer_prefix: begin the answer for the model (an assistant prefill).
    """

    keys: int | None = Field(default=None, ge=1)
    values: Values = "number"
    answer_prefix: bool = True


def layouts(options: MultikeyOptions, depths: Sequence[float]) -> list[ContextLayout]:
    """Spread the depths over as few contexts as hold them, so that each context spans the whole range.

    Context j of m gets depths j, j + m, j + 2m …; where fewer are asked than there are keys, hidden needles fill the
    widest gaps.

    Raises:
        ConfigError: more keys than there are cities or words.
    """
    keys = options.keys if options.keys is not None else max(MIN_KEYS, len(depths))
    pool = min(len(CITIES), len(VALUE_WORDS)) if options.values == "word" else len(CITIES)
    if keys > pool:
        raise ConfigError(
            f"keys={keys} is more than the {pool} names there are; set task.multikey.keys to {pool} or less."
        )
    ordered = sorted(depths)
    contexts = math.ceil(len(ordered) / keys)
    spread = [tuple(ordered[j::contexts]) for j in range(contexts)]
    return [ContextLayout(asked, fill_gaps(asked, keys - len(asked))) for asked in spread]


def fill_gaps(asked: Sequence[float], count: int) -> tuple[float, ...]:
    """``count`` further depths, ascending: each in the middle of the widest gap then left, the shallower of two."""
    taken = sorted({0.0, 1.0, *asked})
    hidden: list[float] = []
    for _ in range(count):
        widest = max(range(len(taken) - 1), key=lambda i: (round(taken[i + 1] - taken[i], 9), -i))
        middle = round((taken[widest] + taken[widest + 1]) / 2, 6)
        taken.insert(widest + 1, middle)
        hidden.append(middle)
    return tuple(sorted(hidden))


def make(options: MultikeyOptions, seed: int, layout: ContextLayout, collides: Collides) -> list[Case]:
    """Cases of one context, in the order of ``layout.asked``.

    Raises:
        ConfigError: too few cities or values that the haystack does not hold.
    """
    places = sorted([(depth, True) for depth in layout.asked] + [(depth, False) for depth in layout.hidden])
    keys = draw_keys(len(places), seed, collides)
    values = draw_values(options.values, len(places), seed, collides)
    needles = tuple(
        Needle(depth, needle_text(options.values, key, value), key, value, asked)
        for (depth, asked), key, value in zip(places, keys, values, strict=True)
    )
    by_depth = {needle.depth: needle for needle in needles if needle.asked}
    return [
        ask(options.values, needles, by_depth[depth], answer_prefix=options.answer_prefix) for depth in layout.asked
    ]


def needle_text(values: Values, key: str, value: str) -> str:
    return f"The special magic {values} for {key} is {value}."


def ask(values: Values, needles: tuple[Needle, ...], asked: Needle, *, answer_prefix: bool) -> Case:
    """The case that asks for one of the needles."""
    several = len(needles) > 1
    instruction = (
        f"The text below hides special magic {values}s, each for one city. Keep them in mind: after the text you will "
        "be asked for one of them."
        if several
        else f"The text below hides a special magic {values} for a city. Keep it in mind: after the text you will be "
        "asked for it."
    )
    return Case(
        depth=asked.depth,
        needles=needles,
        instruction=instruction,
        question=f"What is the special magic {values} for {asked.key} mentioned in the text above?",
        answer_prefix=f"The special magic {values} for {asked.key} is" if answer_prefix else "",
        expected=(asked.value,),
        gold=f" {asked.value}" if answer_prefix else asked.value,
        distractors=tuple(needle.value for needle in needles if needle is not asked),
        scorer="exact",
    )


def rungs(options: MultikeyOptions, depths: Sequence[float]) -> list[dict[str, int]]:  # noqa: ARG001 (the plugin's shape)
    """More keys to tell apart are harder: doubling, as far as there are names."""
    pool = min(len(CITIES), len(VALUE_WORDS)) if options.values == "word" else len(CITIES)
    keys = 2
    found = []
    while keys <= pool:
        found.append({"keys": keys})
        keys *= 2
    return found


PLUGIN = TaskPlugin(
    name="multikey",
    summary="keyed needles at every depth of one context, one question each",
    version=1,
    options=MultikeyOptions,
    layouts=layouts,
    make=make,
    is_complete=is_settled,
    rungs=rungs,
)
