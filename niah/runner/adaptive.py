"""``--trials auto``: rounds of trials for the settings whose verdict is still open, until there is none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from niah.runner.plan import Plan
from niah.store.schema import Row


class Undecided(Protocol):
    """Judges rows between rounds; the statistics behind it lie outside the runner."""

    def __call__(
        self, rows: Sequence[Row], kvs: Sequence[str], reference: str | None, broken: Collection[str]
    ) -> Mapping[str, str]:
        """Settings that need more trials, with the reason in words."""
        ...


class Rounds:
    """How many trials each setting has been granted. Each round doubles the trials of what is undecided.

    All lengths and depths get the same number of trials under one setting: averages over the grid would otherwise lean
    towards the cells that were asked more often. What is granted depends on the rows of earlier rounds alone, so a
    resumed run is granted the same.
    """

    def __init__(self, plan: Plan, undecided: Undecided) -> None:
        self._plan = plan
        self._undecided = undecided
        self._trials = plan.first_trials
        self._active = [kv.name for kv in plan.kvs]
        self._log: list[dict[str, Any]] = []

    def grow(self, rows: Sequence[Row], broken: Collection[str]) -> bool:
        """Grant another round to what the rows leave open; False when there is nothing more to do."""
        kept = [row for row in rows if row.trial < self._trials]
        open_now = dict(self._undecided(kept, self._active, self._plan.reference, broken))
        self._log.append({"trials": self._trials, "undecided": open_now})
        most = self._plan.config.grid.trials
        if not open_now or self._trials >= most:
            return False
        self._trials = min(2 * self._trials, most)
        self._active = [kv for kv in self._active if kv in open_now or kv == self._plan.reference]
        self._plan.limits.update(dict.fromkeys(self._active, self._trials))
        return True

    def stopped(self, status: str) -> str:
        """Why no further trials were spent, in words."""
        last = self._log[-1]["undecided"] if self._log else {}
        if status == "budget":
            return "a limit on time, money or tokens was reached before every verdict was settled"
        if status != "finished":
            return "it was interrupted" if status == "interrupted" else "the run failed"
        if not last:
            return "every verdict is settled"
        return f"{self._plan.config.grid.trials} trials a cell were reached; still open: {', '.join(last)}"

    @property
    def sentence(self) -> str:
        """The last look, for people."""
        last = self._log[-1]
        open_now = "; ".join(f"{kv} {why}" for kv, why in last["undecided"].items()) or "nothing"
        return f"after {last['trials']} trials a cell, open: {open_now}"

    def to_json(self, status: str) -> dict[str, Any]:
        """What ``run.json`` records."""
        return {
            "first": self._plan.first_trials,
            "most": self._plan.config.grid.trials,
            "trials": {kv.name: self._plan.trials_of(kv.name) for kv in self._plan.kvs},
            "rounds": self._log,
            "stopped": self.stopped(status),
        }
