"""Rows as a run would leave them, from shares and a seed: for statistics that need no engine."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from niah.stats.pairs import Pairs
from niah.store.read import RunRecord
from niah.store.schema import Row


def make_row(kv: str, length: int, depth: float, trial: int, correct: bool | None, **changes: Any) -> Row:
    """An answered row; a failed one when ``correct`` is None."""
    fields: dict[str, Any] = {
        "cell_id": f"{kv}|{length}|{depth}|{trial}",
        "pair_id": f"{length}|{depth}|{trial}",
        "backend": "oracle",
        "model": "made",
        "kv": kv,
        "task": "multikey",
        "haystack": "chronicle",
        "length": length,
        "depth": depth,
        "trial": trial,
    }
    if correct is None:
        fields |= {"outcome": "failed", "error": "engine: it gave up"}
    else:
        fields |= {"outcome": "answered", "correct": correct, "score": float(correct), "logprob": -0.5}
    return Row(**(fields | changes))


def make_rows(
    kv: str,
    chance: float | Callable[[int, float], float],
    *,
    lengths: Sequence[int] = (512, 1024),
    depths: int = 5,
    trials: int = 10,
    seed: int = 0,
    logprob: float = -0.5,
) -> list[Row]:
    """A full grid of answered rows; ``chance`` is a share or a function of length and depth."""
    rng = random.Random(seed)
    rows = []
    for length in lengths:
        for trial in range(trials):
            for step in range(depths):
                depth = round(step / max(1, depths - 1), 6)
                share = chance(length, depth) if callable(chance) else chance
                right = rng.random() < share
                rows.append(make_row(kv, length, depth, trial, right, logprob=logprob + rng.gauss(0, 0.1)))
    return rows


def make_record(rows: Sequence[Row], path: str = "made", reference: str | None = "bf16", **manifest: Any) -> RunRecord:
    """A run that was never on disk."""
    settings = {row.kv: {"asked": {}, "effective": {}, "broken": False} for row in rows}
    data: dict[str, Any] = {
        "status": "finished",
        "reference": reference,
        "settings": settings,
        "asked": {"task": "multikey", "backend": "oracle"},
        "model": {"name": "made"},
    }
    return RunRecord(Path(path), data | manifest, tuple(rows))


def simulated_pairs(
    rng: np.random.Generator, contexts: int, depths: int, lose: float, gain: float, together: float = 0.0
) -> Pairs:
    """Pairs that get worse and better with known chances.

    Args:
        together: intraclass correlation of questions of one context; 0 lets each fail on its own.
    """
    count = contexts * depths

    def chances(share: float) -> Any:
        if together == 0 or share == 0:
            return np.full(count, share)
        strength = (1 - together) / together
        return np.repeat(rng.beta(share * strength, (1 - share) * strength, contexts), depths)

    lost_below = chances(lose)
    draw = rng.random(count)
    lost = draw < lost_below
    gained = ~lost & (draw < lost_below + chances(gain))
    base = lost | (~gained & (rng.random(count) < 0.8))
    return Pairs(
        lengths=np.full(count, 1024),
        depths=np.tile(np.linspace(0, 1, depths), contexts),
        contexts=np.repeat(np.arange(contexts), depths),
        base=base,
        new=(base | gained) & ~lost,
        logprob_deltas=np.full(count, np.nan),
    )
