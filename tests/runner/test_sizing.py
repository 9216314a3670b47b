"""Text prompts sized by somebody else's count: never above the length, near it, with few counts where they cost."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import pytest

from niah.errors import ConfigError
from niah.runner.sizing import Sizer
from niah.types import Case, Prompt
from tests.helpers.known import known

ANSWER = 24
CASE = Case(0.0, (), "", "", "", ("7",), "7", (), "exact")


def build(own: int) -> list[Prompt]:
    """Two prompts of one context; the second's question is three tokens shorter."""
    if own < ANSWER + 40:
        raise ConfigError(f"length {own} is too short")
    context = array("i", range(own - ANSWER - 20))
    tails = [array("i", range(20)), array("i", range(17))]
    return [Prompt(context, tail, (), own - len(context) - len(tail), CASE, 0.0, (), "", "") for tail in tails]


@dataclass
class Counter:
    """Counts ``slope`` tokens for each of ours, and a template."""

    slope: float
    template: int
    is_cheap: bool
    jitter: int = 0
    headroom: float = 4.0
    name: str = "a counter"
    counts: list[int] = field(default_factory=list)

    def count(self, prompt: Prompt) -> int:
        own = len(prompt.context) + len(prompt.tail)
        found = round(own * self.slope) + self.template + (own * 7919) % (self.jitter + 1)
        self.counts.append(found)
        return found


@pytest.mark.parametrize("length", [512, 4096, 128 * 1024])
@pytest.mark.parametrize(("slope", "template", "jitter"), [(1.0, 31, 0), (0.4, 9, 0), (0.85, 7, 1), (1.3, 12, 2)])
@pytest.mark.parametrize("is_cheap", [True, False])
def test_fits(length: int, slope: float, template: int, jitter: int, is_cheap: bool) -> None:
    counter = Counter(slope, template, is_cheap, jitter)
    longest, shorter = Sizer(counter, ANSWER).prompts("key", length, build)
    assert longest.counted is not None
    assert longest.counted == longest.token_count <= length - ANSWER
    assert longest.counted + ANSWER >= 0.99 * length
    for prompt in (longest, shorter):
        assert known(prompt.counted) + known(prompt.answer_budget) == length
        assert prompt.answer_budget >= ANSWER
        assert prompt.counted_by == "a counter"
    if slope == 1.0 and is_cheap:
        assert longest.counted == length - ANSWER, "the model's own tokenizer fits exactly"
    if not is_cheap:
        assert len(counter.counts) <= 8


def test_what_was_learned_saves_counts() -> None:
    counter = Counter(0.8, 9, is_cheap=False)
    sizer = Sizer(counter, ANSWER)
    sizer.prompts("first", 4096, build)
    before = len(counter.counts)
    sizer.prompts("second", 4096, build)
    assert len(counter.counts) == before + 1
    sizer.prompts("second", 4096, build)
    assert len(counter.counts) == before + 1, "a context that is fitted is not fitted again"


def test_a_length_that_cannot_be_met_is_refused() -> None:
    with pytest.raises(ConfigError, match="too short"):
        Sizer(Counter(1.0, 31, is_cheap=True), ANSWER).prompts("key", 60, build)

    def only_one(own: int) -> list[Prompt]:
        return build(256)

    with pytest.raises(ConfigError, match="no prompt comes close enough"):
        Sizer(Counter(1.0, 0, is_cheap=True), ANSWER).prompts("key", 4096, only_one)
