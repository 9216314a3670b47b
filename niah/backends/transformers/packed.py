"""Answers all questions of a context in one packed sequence: each sees the context and itself, and all decode together.

The expected answer is appended as a draft. One pass over all questions gives its log-probability and, as far as greedy
decoding agrees with it, the answer too; from the first disagreement on, decoding goes on token by token. Greedy output
does not depend on the draft: a token that is not the most likely one is masked out for good.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

DEAD = -2


class Forward(Protocol):
    """One step of the model over ``ids [n]`` at ``positions [n]``; logits of ``keep`` as fp32 ``[len(keep), vocab]``.

    ``view(window, sinks)`` gives the boolean mask ``[n, keys]`` for layers that keep so much.
    """

    def __call__(self, ids: list[int], positions: list[int], view: View, keep: list[int]) -> torch.Tensor: ...


@dataclass
class Question:
    """State of one question.

    Attributes:
        output: tokens generated so far, without the end-of-sequence token.
        steps: forward passes that this question took part in.
        first_at: time of its first token, by ``time.perf_counter``.
    """

    tail: list[int]
    gold: list[int]
    budget: int
    finished: Callable[[list[int]], str]
    output: list[int] = field(default_factory=list)
    logprob: float = 0.0
    stop: str = ""
    steps: int = 0
    first_at: float = 0.0

    @property
    def generated(self) -> int:
        """Tokens that the model produced: the answer's and the end of the sequence, where it came."""
        return len(self.output) + (self.stop == "end")

    def push(self, token: int, ends: frozenset[int]) -> bool:
        """Take one generated token; True when the answer has come to its end."""
        if token in ends:
            self.stop = "end"
            return True
        self.output.append(token)
        self.stop = self.finished(self.output)
        if not self.stop and len(self.output) >= self.budget:
            self.stop = "length"
        return bool(self.stop)


class Slots:
    """Owner and position of each slot behind the context, from which masks are built."""

    def __init__(self, context_tokens: int, device: torch.device) -> None:
        self.context_tokens = context_tokens
        self.device = device
        self.owners: list[int] = []
        self.positions: list[int] = []

    def add(self, owner: int, position: int) -> int:
        self.owners.append(owner)
        self.positions.append(position)
        return len(self.owners) - 1

    def context_positions(self, window: int | None, sinks: int = 0) -> torch.Tensor:
        """Positions of the context's tokens that a layer still has: the first ``sinks`` and the newest ``window``."""
        everything = torch.arange(self.context_tokens, device=self.device)
        if window is None or self.context_tokens <= window + sinks:
            return everything
        return torch.cat((everything[:sinks], everything[self.context_tokens - window :]))

    def key_positions(self, window: int | None, sinks: int = 0) -> torch.Tensor:
        """Positions ``[keys]`` of what such a layer holds: context, then all slots."""
        own = torch.tensor(self.positions, dtype=torch.long, device=self.device)
        return torch.cat((self.context_positions(window, sinks), own))

    def mask(self, first_query: int, window: int | None, sinks: int = 0) -> torch.Tensor:
        """Boolean ``[queries, keys]``; queries are the slots from ``first_query`` on, keys context then all slots.

        A token sees what is before it in its own sequence, and of that the first ``sinks`` tokens and the newest
        ``window`` ones, itself among them: just what it would see alone.
        """
        owners = torch.tensor(self.owners, device=self.device)
        keys = self.key_positions(window, sinks)
        queries = keys[len(keys) - len(owners) + first_query :, None]
        seen = keys[None] <= queries
        if window is not None:
            seen &= (queries - keys[None] < window) | (keys[None] < sinks)
        seen[:, len(keys) - len(owners) :] &= owners[None] == owners[first_query:, None]
        return seen


@dataclass(frozen=True)
class View:
    """What the slots from ``first`` on may see."""

    slots: Slots
    first: int = 0

    def __call__(self, window: int | None, sinks: int = 0) -> torch.Tensor:
        return self.slots.mask(self.first, window, sinks)

    def key_positions(self, window: int | None, sinks: int = 0) -> torch.Tensor:
        return self.slots.key_positions(window, sinks)

    @staticmethod
    def of_chunk(start: int, count: int, device: torch.device) -> View:
        """The next ``count`` tokens of one sequence behind its first ``start``."""
        slots = Slots(start, device)
        for position in range(start, start + count):
            slots.add(0, position)
        return View(slots)


def room_needed(questions: Sequence[Question]) -> int:
    """Slots that a packed run may fill behind the context."""
    return sum(len(q.tail) + len(q.gold) + q.budget for q in questions)


def answer_packed(
    forward: Forward, questions: Sequence[Question], context_tokens: int, ends: frozenset[int], device: torch.device
) -> None:
    """Answer all questions greedily in place, behind a cache that holds ``context_tokens``.

    Raises:
        FloatingPointError: the model's logits are not finite.
    """
    slots = Slots(context_tokens, device)
    waiting = _first_pass(forward, questions, slots, ends)
    while waiting:
        first = len(slots.owners)
        ids, positions = [], []
        for i in waiting:
            question = questions[i]
            position = context_tokens + len(question.tail) + len(question.output) - 1
            slots.add(i, position)
            ids.append(question.output[-1])
            positions.append(position)
            question.steps += 1
        tokens = _masked(forward, slots, first, ids, positions, list(range(len(ids)))).argmax(-1).tolist()
        waiting = [i for i, token in zip(waiting, tokens, strict=True) if not questions[i].push(token, ends)]


def _masked(
    forward: Forward, slots: Slots, first: int, ids: list[int], positions: list[int], keep: list[int]
) -> torch.Tensor:
    logits = forward(ids, positions, View(slots, first), keep)
    if not bool(torch.isfinite(logits).all()):
        raise FloatingPointError("the model's logits are not finite")
    return logits


def _first_pass(forward: Forward, questions: Sequence[Question], slots: Slots, ends: frozenset[int]) -> list[int]:
    """All tails with their drafts in one pass; returns the questions that need more tokens."""
    ids: list[int] = []
    keep: list[int] = []
    draft_slots: list[list[int]] = []
    for i, question in enumerate(questions):
        text = [*question.tail, *question.gold]
        start = len(ids)
        own = [slots.add(i, slots.context_tokens + j) for j in range(len(text))]
        ids += text
        draft_slots.append(own[len(question.tail) :])
        keep += range(start + len(question.tail) - 1, start + len(text))
        question.steps = 1
    logits = _masked(forward, slots, 0, ids, list(slots.positions), keep)
    first_at = time.perf_counter()
    waiting, row = [], 0
    for i, question in enumerate(questions):
        question.first_at = first_at
        rows = logits[row : row + len(question.gold) + 1]
        row += len(question.gold) + 1
        if not _take_draft(question, rows, draft_slots[i], slots, ends):
            waiting.append(i)
    return waiting


def _take_draft(question: Question, rows: torch.Tensor, draft: list[int], slots: Slots, ends: frozenset[int]) -> bool:
    """Score the expected answer on ``rows [gold + 1, vocab]`` and accept it as far as it is the greedy one."""
    gold = torch.tensor(question.gold, device=rows.device)
    scores = rows[:-1].float().log_softmax(-1)
    question.logprob = float(scores.gather(1, gold[:, None]).sum())
    done = False
    for j, token in enumerate(rows.argmax(-1).tolist()):
        done = question.push(token, ends)
        agreed = j < len(question.gold) and token == question.gold[j]
        if done or not agreed:
            for slot in draft[j:]:
                slots.owners[slot] = DEAD
            break
    return done
