"""Sizing of prompts that are sent as text: as long as asked by the count of the model or service that reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from niah.errors import ConfigError
from niah.prompts.tokens import Counter
from niah.types import Prompt

# the share of a length that a prompt and its least answer budget must fill
LEAST_SHARE = 0.99
# a provider's count costs a request, so one within this share of the goal is taken as it is
_GOOD_SHARE = 0.9975
# counts until the best so far must do; a count that costs nothing may be asked for more often
_ROUNDS = {True: 24, False: 8}
# rounds in which a cheap counter is asked for the exact goal: with the model's own tokenizer two or three find it
_EXACT_ROUNDS = 5
# where only the longest prompt of a context is counted, another may be longer by this
_SPREAD_TOKENS = 4
# two counts that lie closer together say more of rounding than of the tokenizers
_APART_TOKENS = 64

Build = Callable[[int], list[Prompt]]


@dataclass(frozen=True, slots=True)
class _Fit:
    """A length in our own tokens, and what the longest prompt built for it counts."""

    own: int
    counted: int


class _Line(NamedTuple):
    """counted = slope × own + offset"""

    slope: float
    offset: float


class Sizer:
    """Finds for each context the length in our tokenizer's tokens whose prompts are as long as was asked."""

    def __init__(self, counter: Counter, min_answer_budget: int) -> None:
        self._counter = counter
        self._answer = min_answer_budget
        self._fits: dict[object, _Fit] = {}
        self._line = _Line(1.0, 0.0)

    def prompts(self, key: object, length: int, build: Build) -> list[Prompt]:
        """The prompts of one context; once it has been fitted, a context is not fitted again.

        Args:
            key: of the context.
            length: whole budget in counted tokens, answer included.
            build: prompts for a length in our own tokens.

        Raises:
            ConfigError: the length is too short, or none in reach comes within one per cent of it.
        """
        if key not in self._fits:
            self._fits[key] = self._fit(length, build)
        fit = self._fits[key]
        return self._counted(build(fit.own), fit, length)

    def _fit(self, length: int, build: Build) -> _Fit:
        goal = length - self._answer - (0 if self._counter.is_cheap else _SPREAD_TOKENS)
        own = self._answer + round((goal - self._line.offset) / self._line.slope)
        seen: dict[int, int] = {}
        best: _Fit | None = None
        while len(seen) < _ROUNDS[self._counter.is_cheap]:
            counted = self._counter.count(_longest(build(own)))
            seen[own] = counted
            self._line = _line(seen, self._answer)
            if counted <= goal and (best is None or counted > best.counted):
                best = _Fit(own, counted)
            is_exact = self._counter.is_cheap and len(seen) <= _EXACT_ROUNDS
            enough = goal if is_exact else _GOOD_SHARE * goal
            if best is not None and best.counted >= enough:
                return best
            own = _next(own, goal - counted, self._line.slope, seen)
        if best is None or best.counted + length - goal < LEAST_SHARE * length:
            closest = f"at best {best.counted:,}" if best else "none below"
            raise ConfigError(
                f"length {length}: no prompt comes close enough to {goal:,} tokens as {self._counter.name} counts "
                f"({closest}); ask for longer ones."
            )
        return best

    def _counted(self, prompts: Sequence[Prompt], fit: _Fit, length: int) -> list[Prompt]:
        longest = _longest(prompts)
        out = []
        for prompt in prompts:
            if self._counter.is_cheap and prompt is not longest:
                counted = self._counter.count(prompt)
            else:
                # questions of one context differ by a word or two; the reply's usage shows what that comes to
                counted = fit.counted + len(prompt.tail) - len(longest.tail)
            budget = length - counted
            out.append(replace(prompt, answer_budget=budget, counted=counted, counted_by=self._counter.name))
        return out


def _longest(prompts: Sequence[Prompt]) -> Prompt:
    return max(prompts, key=lambda prompt: len(prompt.tail))


def _line(seen: Mapping[int, int], answer: int) -> _Line:
    """From the two counts that lie furthest apart, or from one."""
    low, high = min(seen), max(seen)
    if high - low >= _APART_TOKENS and seen[high] > seen[low]:
        slope = (seen[high] - seen[low]) / (high - low)
        return _Line(slope, seen[high] - slope * (high - answer))
    own, counted = high - answer, seen[high]
    if abs(counted / own - 1) < 0.1:
        # the same or nearly the same tokenizer, and a template around the text
        return _Line(1.0, counted - own)
    return _Line(counted / own, 0.0)


def _next(own: int, missing: int, slope: float, seen: Mapping[int, int]) -> int:
    """The next length to try: where the line says, or the nearest to it that has not been tried, below before above."""
    step = int(missing / slope)
    guess = own + (step or (1 if missing > 0 else -1))
    away = 0
    while True:
        for candidate in (guess - away, guess + away):
            if candidate not in seen:
                return candidate
        away += 1
