"""The tally of ``--reuse verify``: answers over reused prefixes against answers from the first token on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from niah.kv.config import KVConfig
from niah.store.schema import Row
from niah.types import Failure, Reply

_SHOWN_KINDS = 3


@dataclass
class Verified:
    """A tally over the cells of a sample.

    Attributes:
        asked: cells of the sample.
        cells: those that were answered both times, which alone can be compared.
        same: of these, the ones with the same answer.
        differences: log-probability of the expected answer as the run has it, less the one without reuse.
        reasons: why the others could not be compared.
    """

    asked: int = 0
    cells: int = 0
    same: int = 0
    differences: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row | None, reply: Reply) -> None:
        """One cell: its row in the run, and the reply without reuse."""
        self.asked += 1
        if row is None:
            self.reasons["not asked in the run"] += 1
        elif row.outcome != "answered":
            self.reasons[f"{row.outcome} in the run"] += 1
        elif isinstance(reply, Failure):
            self.reasons[f"{reply.kind} without reuse"] += 1
        else:
            self.cells += 1
            self.same += reply.text == row.answer
            if row.logprob is not None and reply.logprob is not None:
                self.differences.append(row.logprob - reply.logprob)

    def to_json(self) -> dict[str, Any]:
        widest = max(map(abs, self.differences), default=None)
        mean = sum(self.differences) / len(self.differences) if self.differences else None
        return {
            "asked": self.asked,
            "cells": self.cells,
            "same_answers": self.same,
            "max_logprob_difference": widest,
            "mean_logprob_difference": mean,
        }

    @property
    def is_warning(self) -> bool:
        """Whether an answer differed, or none could be compared."""
        return self.same < self.cells or not self.cells

    def sentence(self, kv: KVConfig) -> str:
        """The tally for people."""
        if not self.asked:
            return f"{kv.name}: reuse is not verified, as the run has no cell to ask again"
        if not self.cells:
            why = ", ".join(f"{count} {reason}" for reason, count in self.reasons.most_common(_SHOWN_KINDS))
            return f"{kv.name}: reuse is not verified, as none of {self.asked} cells could be compared: {why}"
        of = f"{self.cells} cells" if self.cells == self.asked else f"{self.cells} of {self.asked} cells"
        text = f"{kv.name}: reuse verified on {of}: {self.same} same answers, {self._logprobs()}"
        if self.same < self.cells and kv.is_quantized:
            text += "; a quantized cache decides close calls by what a question is packed with (how-we-measure.md)"
        return text

    def _logprobs(self) -> str:
        if not self.differences:
            return "no log-probabilities to compare"
        found = self.to_json()
        return (
            f"log-probabilities within {found['max_logprob_difference']:.4f} "
            f"(mean difference {found['mean_logprob_difference']:+.4f})"
        )
