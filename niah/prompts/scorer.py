"""The scorer protocol: a pure function from an answer and its case to a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from niah.registry import Plugin
from niah.types import Scorer


@dataclass(frozen=True, slots=True)
class ScorerPlugin(Plugin):
    """A scorer.

    Attributes:
        version: goes into every score; raise it when the same answer gets another score.
        score: from the answer's text and the case to a ``Score`` with a value of 0-1 and a ``why`` that is never
            empty; it raises nothing, whatever the answer holds.
    """

    kind: ClassVar[str] = "scoring"
    version: int
    score: Scorer
