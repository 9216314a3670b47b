"""Rows from replies: the outcome of a cell first, and a score only for an answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from niah import registry
from niah.redact import redact
from niah.runner.cells import PlannedCell
from niah.runner.plan import Plan
from niah.runner.prices import billed
from niah.store.schema import Row
from niah.types import Answer, Failure, OutcomeKind, Prompt, Reply

# 64 bits hold more, but a float of it would no longer be exact
_MOST = 2**53


def failed_row(plan: Plan, cell: PlannedCell, failure: Failure, attempt: int) -> Row:
    """The row of a cell that has no answer, whether its prompt was sent or could not even be built."""
    return Row(**_common(plan, cell, attempt), outcome="failed", error=_error(failure))


def _error(failure: Failure) -> str:
    return redact(f"{failure.kind}: {failure.message}")


def _common(plan: Plan, cell: PlannedCell, attempt: int) -> dict[str, Any]:
    """Columns that every row of a cell has."""
    return {
        "cell_id": cell.cell_id,
        "pair_id": cell.pair_id,
        "backend": plan.backend.name,
        "model": plan.info.name,
        "kv": cell.kv.name,
        "task": plan.builder.task.name,
        "haystack": plan.config.haystack.name,
        "length": cell.group.length,
        "depth": cell.case.depth,
        "trial": cell.group.trial,
        "answer_prefix": bool(cell.case.answer_prefix),
        "expected": cell.case.expected,
        "attempt": attempt,
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def make_row(
    plan: Plan, cell: PlannedCell, prompt: Prompt, reply: Reply, attempt: int, *, answer_cached: bool = False
) -> Row:
    """The row of one cell. A failure has no score; a reply cut off before its answer was complete is ``truncated``.

    Args:
        prompt: the cell's prompt as it was sent.
        attempt: number of the row among those of its cell, from 1.
        answer_cached: the reply came from the answer cache, so nobody billed it.
    """
    common = _common(plan, cell, attempt) | {
        "depth_real": prompt.depth_real,
        "prompt_tokens": prompt.token_count,
        "answer_budget": prompt.answer_budget,
        "prompt_sha256": prompt.sha256,
        "counted_by": prompt.counted_by,
    }
    if isinstance(reply, Answer) and (odd := _impossible(reply)):
        reply = Failure("bad_reply", f"the engine counts {odd}, which no request can have")
    if not isinstance(reply, Answer):
        return Row(**common, outcome="failed", error=_error(reply))
    common |= {
        "engine_prompt_tokens": reply.prompt_tokens,
        "count_difference": reply.prompt_tokens - prompt.token_count if reply.prompt_tokens is not None else None,
        "output_tokens": reply.output_tokens,
        "cached_tokens": reply.cached_tokens,
        "cache_write_tokens": reply.cache_write_tokens,
        "reasoning_tokens": reply.reasoning_tokens,
        "requests": reply.requests,
        "cost_usd": _cost(plan, reply, is_free=answer_cached),
        "answer_cached": answer_cached,
        "answer": reply.text,
        "reasoning": reply.reasoning,
        "logprob": reply.logprob,
        "answer_logprob": reply.answer_logprob,
        "stop": reply.stop,
        "kv_memory": reply.memory,
        "timing": reply.timing,
    }
    outcome = outcome_of(plan, prompt, reply)
    if outcome != "answered":
        return Row(**common, outcome=outcome, error=f"{outcome}: stopped by {reply.stop!r}")
    score = registry.load("scoring", prompt.case.scorer).score(reply.text, prompt.case)
    return Row(
        **common,
        outcome="answered",
        correct=score.correct,
        score=score.value,
        why=score.why,
        scorer=f"{score.scorer}/{score.version}",
    )


def _impossible(reply: Answer) -> str:
    """Counts of an answer that cannot be: every reader of rows keeps them in 64 bits."""
    counts = {
        "prompt tokens": reply.prompt_tokens,
        "output tokens": reply.output_tokens,
        "cached tokens": reply.cached_tokens,
        "tokens written to a cache": reply.cache_write_tokens,
        "reasoning tokens": reply.reasoning_tokens,
        "bytes held": reply.memory.allocated_bytes,
        "tokens stored": reply.memory.tokens,
    }
    return ", ".join(f"{str(value)[:40]} {name}" for name, value in counts.items() if value and not 0 <= value <= _MOST)


def _cost(plan: Plan, reply: Answer, *, is_free: bool) -> float | None:
    if plan.prices is None:
        return None
    used = billed(reply)
    return 0.0 if is_free else None if used is None else plan.prices.cost_usd(used, batch=reply.batched)


def outcome_of(plan: Plan, prompt: Prompt, reply: Answer) -> OutcomeKind:
    """Only ``answered`` is right or wrong."""
    if reply.stop == "refused":
        return "refused"
    if reply.stop == "length" and not plan.builder.task.is_complete(reply.text, prompt.case):
        return "truncated"
    return "answered"
