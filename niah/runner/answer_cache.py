"""The answer cache: the same prompt to the same engine under the same setting is not asked twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from niah.kv.config import KVConfig
from niah.models.embedded import cache_root
from niah.paths import as_path
from niah.runner.plan import Plan
from niah.store.answers import AnswerStore
from niah.types import Answer, Prompt, Reply

# what ``--cache`` without a folder stands for
DEFAULT = "default"


def cache_folder(asked: str) -> Path:
    """The folder that ``--cache`` names; without one, a folder beside the converted models."""
    return cache_root() / "answers" if asked == DEFAULT else as_path(asked)


@dataclass
class AnswerCache:
    """The answers of one plan; without a store nothing is kept and nothing is found."""

    plan: Plan
    store: AnswerStore | None

    def get(self, kv: KVConfig, prompt: Prompt) -> Answer | None:
        return None if self.store is None else self.store.get(self.plan.answer_id(kv, prompt))

    def put(self, kv: KVConfig, prompt: Prompt, reply: Reply) -> None:
        """Keep an answer. A service may refuse once and answer later, so a refusal is asked again."""
        if self.store is not None and isinstance(reply, Answer) and reply.stop != "refused":
            self.store.put(self.plan.answer_id(kv, prompt), reply)

    def all(self, kv: KVConfig, prompts: Sequence[Prompt]) -> list[Reply] | None:
        """Answers to all of them, or None."""
        found = [answer for prompt in prompts if (answer := self.get(kv, prompt)) is not None]
        return [*found] if len(found) == len(prompts) else None


@contextmanager
def opened_cache(plan: Plan) -> Iterator[AnswerCache]:
    """The cache that a plan's config names.

    Raises:
        StoreError: it cannot be opened.
    """
    if plan.config.cache is None:
        yield AnswerCache(plan, None)
        return
    with AnswerStore(cache_folder(plan.config.cache)) as store:
        yield AnswerCache(plan, store)
