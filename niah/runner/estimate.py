"""Estimates of what a plan would be billed, before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from typing import Any

from niah.errors import CellError, ConfigError
from niah.runner.canary import CANARY_DEPTHS, CANARY_LENGTH
from niah.runner.plan import Plan
from niah.runner.prices import Billed
from niah.runner.prompt_builder import Group

# tokens of a question with its template tail where no prompt could be built
_TYPICAL_TAIL = 48


@dataclass(frozen=True, slots=True)
class Estimate:
    """Tokens and money of a whole plan, canaries included; answers are counted with their full budget, reasoning with
    all that it may take.

    Attributes:
        cost_usd: of the run as it is asked for: as batches, or else with every context read from the provider's prefix
            cache after its first question, unless the run says ``--reuse off``; None without a price.
        uncached_usd: prompt by prompt with nothing read from a cache: the most that it can cost.
        batch_usd: submitted as batches; canaries are asked before and at the full price.
    """

    prompts: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: float | None
    uncached_usd: float | None
    batch_usd: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Estimator:
    """Tokens of groups under one plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tail = _tail_tokens(plan)
        self._output = plan.config.answer_budget + plan.info.reasoning_tokens
        # requests of a batch run in any order: nothing read from a cache is counted on
        self._caches = plan.config.reuse != "off" and not plan.config.batch

    def group(self, group: Group, questions: int, *, follows: bool = False) -> list[Billed]:
        """One entry a question.

        Args:
            follows: whether the group before had the same text, so that the part before this needle is cached.
        """
        prompt = group.length - self._plan.config.answer_budget
        context = max(0, prompt - self._tail)
        before = int(context * min(group.layout.asked)) if follows and self._caches else 0
        first = Billed(prompt, before, (context - before) if self._caches else 0, self._output)
        return [first, *[Billed(prompt, context if self._caches else 0, 0, self._output)] * (questions - 1)]

    def canary(self) -> list[Billed]:
        return [Billed(CANARY_LENGTH, 0, 0, self._output)] * len(CANARY_DEPTHS)

    def cost_usd(self, parts: Iterable[Billed], *, batch: bool = False) -> float | None:
        """Their price together; each is a request of its own, as some lists have steps by length."""
        prices = self._plan.prices
        costs = [] if prices is None else [prices.cost_usd(part, batch=batch) for part in parts]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if prices is not None and len(known) == len(costs) else None


def estimate(plan: Plan) -> Estimate:
    """The whole plan, whether or not parts of it have answers already."""
    estimator = Estimator(plan)
    canaries = [part for _ in plan.kvs for part in estimator.canary()]
    cells = [part for kv in plan.kvs for part in _setting(plan, kv.name, estimator)]
    plain = [Billed(part.prompt, 0, 0, part.output) for part in cells]
    total = reduce(add, [*canaries, *cells])

    def cost_usd(parts: list[Billed], *, batch: bool) -> float | None:
        beside, own = estimator.cost_usd(canaries), estimator.cost_usd(parts, batch=batch)
        return None if beside is None or own is None else beside + own

    return Estimate(
        prompts=len(canaries) + len(cells),
        prompt_tokens=total.prompt,
        cached_tokens=total.cached,
        output_tokens=total.output,
        cost_usd=cost_usd(cells, batch=plan.config.batch),
        uncached_usd=cost_usd(plain, batch=False),
        batch_usd=cost_usd(plain, batch=True),
    )


def _setting(plan: Plan, kv: str, estimator: Estimator) -> Iterator[Billed]:
    before: Group | None = None
    for group in plan.groups_of(kv):
        follows = before is not None and (before.length, before.trial) == (group.length, group.trial)
        yield from estimator.group(group, len(group.layout.asked), follows=follows)
        before = group


def _tail_tokens(plan: Plan) -> int:
    """Tokens behind a context, from the shortest prompts of the plan."""
    shortest = min(plan.groups, key=lambda group: (group.length, group.trial))
    try:
        return max(len(prompt.tail) for prompt in plan.builder.prompts(shortest))
    except (CellError, ConfigError):
        return _TYPICAL_TAIL  # the plan refuses it, with the reason
