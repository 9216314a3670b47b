"""Checks KV settings against the prompts of a run, once their lengths are known."""

from __future__ import annotations

from collections.abc import Iterator

from niah.kv.config import KVConfig
from niah.types import Problem


def prompt_problems(kv: KVConfig, context_tokens: int, question_tokens: int) -> Iterator[Problem]:
    """Why a setting cannot serve a prompt of so many tokens: context, and question with its answer.

    A window that does not hold sinks, question and answer would drop the question while it is being answered.
    """
    kept_sinks = kv.window.sinks if kv.window else 0
    needed = question_tokens + kept_sinks
    room = {"window": kv.window.size if kv.window else None, "segment": kv.memory.segment if kv.memory else None}
    for what, tokens in room.items():
        if tokens is not None and tokens < needed:
            sinks = f" and {kept_sinks} sinks" if kept_sinks else ""
            reason = f"a {what} of {tokens:,} tokens does not hold question and answer of {question_tokens:,}{sinks}"
            yield Problem("kv", kv.name, reason, f"Use a {what} of at least {needed}.")
    ranks = kv.placement.context_parallel
    if ranks > context_tokens:
        reason = f"{ranks:,} ranks share a context of {context_tokens:,} tokens: some would store none"
        yield Problem("kv", kv.name, reason, f"Use at most {context_tokens} ranks, or longer prompts.")
