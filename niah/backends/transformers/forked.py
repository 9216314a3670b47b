"""Answers one question in its own copy of the context's cache, for caches that a question would change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from niah.backends.transformers.packed import Question


class Sequential(Protocol):
    """A model that processes the next tokens of one sequence, and copies of its caches."""

    def prefill(self, held: Any, ids: Sequence[int], start: int) -> torch.Tensor: ...

    def fork(self, held: Any) -> Any: ...


def answer_forked(model: Sequential, held: Any, question: Question, context_tokens: int, ends: frozenset[int]) -> int:
    """Answer greedily in place, after the context in cache ``held``, which is modified; returns the forward passes.

    The expected answer is scored in another copy, so that it cannot influence the generated answer.

    Raises:
        FloatingPointError: the model's logits are not finite.
    """
    at = context_tokens + len(question.tail)
    logits = _finite(model.prefill(held, question.tail, context_tokens))[-1]
    question.first_at = time.perf_counter()
    steps = 1 + _score(model, held, question, at, logits)
    question.steps = 1
    while not question.push(int(logits.argmax()), ends):
        logits = _finite(model.prefill(held, question.output[-1:], at + len(question.output) - 1))[-1]
        question.steps += 1
    return steps + question.steps - 1


def _score(model: Sequential, held: Any, question: Question, at: int, logits: torch.Tensor) -> int:
    """Log-probability of the expected answer, token by token; returns the forward passes."""
    question.logprob = 0.0
    copy = model.fork(held)
    for j, token in enumerate(question.gold):
        if j:
            logits = _finite(model.prefill(copy, question.gold[j - 1 : j], at + j - 1))[-1]
        question.logprob += float(logits.float().log_softmax(-1)[token])
    return max(0, len(question.gold) - 1)


def _finite(logits: torch.Tensor) -> torch.Tensor:
    if not bool(torch.isfinite(logits).all()):
        raise FloatingPointError("the model's logits are not finite")
    return logits
