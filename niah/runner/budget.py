"""Limits on money and tokens: what would exceed them, as far as can be known before, is not asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from niah.runner.estimate import Estimator
from niah.runner.plan import Plan
from niah.runner.prices import Billed, billed
from niah.runner.prompt_builder import Group
from niah.store.schema import Row
from niah.types import Answer, Reply


@dataclass
class Spending:
    """What a run has been billed, all its parts together, and what is in flight.

    Attributes:
        beside_usd, beside_tokens: of these, what has no row: canaries, probes, verified samples, replies that were no
            answer.
        why: the limit that was reached, as a sentence; empty until then.
    """

    plan: Plan
    estimator: Estimator | None
    usd: float = 0.0
    tokens: int = 0
    beside_usd: float = 0.0
    beside_tokens: int = 0
    why: str = ""
    _in_flight: dict[Group, tuple[int, float]] = field(default_factory=dict)

    @staticmethod
    def of(plan: Plan, rows: Iterable[Row], beside_usd: float, beside_tokens: int) -> Spending:
        """From all rows on disk, superseded ones included: they were paid for too."""
        limited = plan.config.max_cost is not None or plan.config.max_tokens is not None
        found = Spending(plan, Estimator(plan) if limited else None)
        found.beside_usd, found.beside_tokens = beside_usd, beside_tokens
        found.usd, found.tokens = beside_usd, beside_tokens
        for row in rows:
            found.row(row)
        return found

    def row(self, row: Row) -> None:
        """A row was written."""
        if not row.answer_cached:
            self.usd += row.cost_usd or 0.0
            self.tokens += (row.engine_prompt_tokens or 0) + (row.output_tokens or 0)

    def beside(self, replies: Iterable[Reply]) -> None:
        """Replies that get no row."""
        for reply in replies:
            used = billed(reply) if isinstance(reply, Answer) else None
            if used is None:
                continue
            batched = isinstance(reply, Answer) and reply.batched
            cost = self.plan.prices.cost_usd(used, batch=batched) if self.plan.prices is not None else None
            self.usd, self.beside_usd = self.usd + (cost or 0.0), self.beside_usd + (cost or 0.0)
            self.tokens, self.beside_tokens = self.tokens + used.total, self.beside_tokens + used.total

    def admit(self, group: Group, questions: int) -> bool:
        """Whether a group may be asked; it then counts until ``settle``. Once refused, everything is."""
        if self.estimator is None:
            return True
        parts = self.estimator.group(group, questions)
        return self._admit(group, parts)

    def admit_canary(self) -> bool:
        """Whether canaries may be asked."""
        if self.estimator is None:
            return True
        return self._admit(None, self.estimator.canary())

    def _admit(self, group: Group | None, parts: list[Billed]) -> bool:
        if self.why or self.estimator is None:
            return not self.why
        config = self.plan.config
        # canaries are never part of a batch
        batch = config.batch and group is not None
        tokens, usd = sum(part.total for part in parts), self.estimator.cost_usd(parts, batch=batch) or 0.0
        flying_tokens = sum(t for t, _ in self._in_flight.values())
        flying_usd = sum(u for _, u in self._in_flight.values())
        if config.max_cost is not None and self.usd + flying_usd + usd > config.max_cost:
            self.why = (
                f"the limit of ${config.max_cost:g}: ${self.usd + flying_usd:.4f} is spent or asked for and the next "
                f"context would cost about ${usd:.4f}; the same command with a higher limit goes on"
            )
        elif config.max_tokens is not None and self.tokens + flying_tokens + tokens > config.max_tokens:
            self.why = (
                f"the limit of {config.max_tokens:,} tokens: {self.tokens + flying_tokens:,} are used or asked for and "
                f"the next context would take about {tokens:,}; the same command with a higher limit goes on"
            )
        elif group is not None:
            self._in_flight[group] = (tokens, usd)
        return not self.why

    def settle(self, group: Group) -> None:
        """A group has its rows: what it really took is counted by now."""
        self._in_flight.pop(group, None)
