"""A made-up run, and single rows of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from niah.store.read import RunRecord
from niah.store.schema import Row
from tests.helpers.reports import make_row, make_rows, manifest, no_answer


@pytest.fixture
def make_record() -> Callable[..., RunRecord]:
    """Makes a run: four settings, one broken, with failed, truncated, refused, missing and hostile cells."""

    def build(trials: int = 6, path: Path = Path("results/2026-11-29-smollm2-transformers-abc123")) -> RunRecord:
        return RunRecord(path, manifest(), tuple(make_rows(trials)))

    return build


@pytest.fixture
def record(make_record: Callable[..., RunRecord]) -> RunRecord:
    return make_record()


@pytest.fixture
def cell() -> Callable[..., Row]:
    """Makes one answered row; keyword arguments change it, ``lost="failed"`` and the like take its answer away."""

    def build(
        *,
        correct: bool = True,
        kv: str = "int8",
        length: int = 1024,
        depth: float = 0.5,
        trial: int = 0,
        lost: str = "",
        **changes: Any,
    ) -> Row:
        judged: dict[str, Any] = {"correct": correct, "score": float(correct)}
        if lost:
            judged = no_answer(lost, f"{lost}: made up")
        return make_row(kv, length, depth, trial, random.Random(0), **(judged | changes))

    return build
