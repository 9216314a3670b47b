"""Builds the prompts of a plan: opens the haystack, tokenises each stream once, makes cases and assembles them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from niah import registry
from niah.config import Named, RunConfig, validate
from niah.engines.base import ModelInfo
from niah.grid import seed_from
from niah.prompts.builder import build_context
from niah.prompts.haystack import Haystack, HaystackPlugin
from niah.prompts.segments import Segmented, tokenize
from niah.prompts.task import ContextLayout, TaskOptions, TaskPlugin
from niah.runner.sizing import Sizer
from niah.types import Case, Prompt

# raised when the same cases would be assembled into other tokens
BUILDER_VERSION = 1
# raised when needles that go inside sentences would go elsewhere; part of the identity of no other prompt
PLACING_VERSION = 1
# streams of one seed lie side by side; another seed starts far away
STREAMS_PER_SEED = 10_000
# tokenised haystacks take about 15 bytes a token with their text
KEPT_TOKENS = 8_000_000


@dataclass(frozen=True, slots=True)
class Group:
    """Cells that share a context: one length, one trial, the depths of one layout."""

    length: int
    trial: int
    index: int
    layout: ContextLayout


class PromptBuilder:
    """Everything needed to build any prompt of a run, again and again the same."""

    def __init__(self, config: RunConfig, info: ModelInfo, max_length: int) -> None:
        self.config = config
        self.info = info
        self.max_length = max_length
        self.task: TaskPlugin[Any] = registry.load("tasks", config.task.name)
        self.task_options: TaskOptions = validate(self.task.options, config.task.options, "task")
        self.source = open_haystack(config.haystack)
        self._segmented: dict[int, Segmented] = {}
        self._coarse: dict[tuple[int, int], bool] = {}
        self._cases: dict[Group, list[Case]] = {}
        self._sizer = Sizer(info.counter, config.answer_budget) if info.counter is not None else None

    def segmented(self, trial: int) -> Segmented:
        """The haystack of a trial as tokens, kept as long as all that are kept stay within the memory allowed."""
        if trial not in self._segmented:
            while self._segmented and (len(self._segmented) + 1) * self.max_length > KEPT_TOKENS:
                self._segmented.pop(next(iter(self._segmented)))
            stream = self.config.grid.seed * STREAMS_PER_SEED + trial
            need = self._own(self.max_length)
            self._segmented[trial] = tokenize(self.source, stream, self.info.tokenizer, need, may_end=True)
        return self._segmented[trial]

    def is_coarse(self, length: int, trial: int) -> bool:
        """Whether needles of a context may go inside sentences, since these are too long for its length."""
        key = length, trial
        if key not in self._coarse:
            self._coarse[key] = self.segmented(trial).is_coarse(self._own(length))
        return self._coarse[key]

    def _own(self, length: int) -> int:
        """Tokens of our own tokenizer that a prompt of a length may have at most."""
        return length if self.info.counter is None else int(length * self.info.counter.headroom)

    def layouts(self, depths: tuple[float, ...]) -> list[ContextLayout]:
        return self.task.layouts(self.task_options, depths)

    def prompts(self, group: Group) -> list[Prompt]:
        """The group's prompts in the order of ``group.layout.asked``.

        Raises:
            ConfigError: the length is too short, the haystack ends too early, or a needle stands in it.
        """
        segmented, cases = self.segmented(group.trial), self.cases(group)

        inside = self.is_coarse(group.length, group.trial)

        def build(length: int) -> list[Prompt]:
            budget = self.config.answer_budget
            info = self.info
            return build_context(
                info.tokenizer, info.template, segmented, cases, length, budget, inside_sentences=inside
            )

        if self._sizer is None:
            return build(group.length)
        return self._sizer.prompts(group, group.length, build)

    def cases(self, group: Group) -> list[Case]:
        """The group's cases, in the order of ``group.layout.asked``, without assembling their prompts."""
        if group not in self._cases:
            collides = self.segmented(group.trial).collides(self._own(group.length))
            seed = case_seed(self.config, self.task.name, group)
            cases = self.task.make(self.task_options, seed, group.layout, collides)
            self._cases[group] = cases if self.info.assistant_prefill else [unprompted(case) for case in cases]
        return self._cases[group]


def case_seed(config: RunConfig, task: str, group: Group) -> int:
    """What a context's cases are drawn by."""
    return seed_from("case", config.grid.seed, task, group.length, group.trial, group.index)


def unprompted(case: Case) -> Case:
    """The case for a model whose answer cannot be begun for it."""
    return replace(case, answer_prefix="", gold=case.gold.lstrip())


def open_haystack(named: Named) -> Haystack:
    """Open the configured source with its options validated."""
    plugin: HaystackPlugin[Any] = registry.load("haystacks", named.name)
    return plugin.open(validate(plugin.options, named.options, "haystack"), named.argument)
