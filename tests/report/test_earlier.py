"""The correlation that a plan assumes: of earlier runs of the model, or one that is taken for granted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import niah as package
from niah.report.data.earlier import assumed_correlation
from niah.stats.correlation import changes_together
from niah.stats.pairs import Pairs, join_rows
from tests.helpers.made_rows import make_rows, simulated_pairs


def test_nothing_known_is_taken_for_granted(tmp_path: Path) -> None:
    found = assumed_correlation(tmp_path / "nowhere", "smollm2")
    assert found.value == 0.05
    assert found.source.startswith("taken for granted: no earlier run of smollm2 in ")


def test_runs_of_that_model_are_read(tmp_path: Path) -> None:
    run = package.run(
        backend={"name": "oracle", "options": {"loss": {"int8": 0.4}}}, kv=["bf16", "int8"], lengths="512,1k",
        depths=5, trials=6, out=str(tmp_path),
    )  # fmt: skip
    base, new = ([row for row in run.rows if row.kv == kv] for kv in ("bf16", "int8"))
    seen = changes_together(join_rows(base, new))
    found = assumed_correlation(tmp_path, "analytic")
    assert found.value == seen
    assert found.source == f"seen in 1 earlier run of analytic in {tmp_path}"
    assert assumed_correlation(tmp_path, "another").value == 0.05

    manifest = json.loads((run.path / "run.json").read_text())
    manifest["settings"]["int8"]["broken"] = True
    (run.path / "run.json").write_text(json.dumps(manifest))
    assert assumed_correlation(tmp_path, "analytic").value == 0.05, "garbage says nothing of the model"
    (run.path / "run.json").write_text("{")
    assert assumed_correlation(tmp_path, "analytic").value == 0.05, "a plan does not fail because of another run"


@pytest.mark.parametrize("together", [0.0, 0.1, 0.3])
def test_the_estimate_finds_what_was_put_in(together: float) -> None:
    rng = np.random.default_rng(6)
    found = [changes_together(simulated_pairs(rng, 60, 11, 0.2, 0.05, together)) for _ in range(60)]
    assert all(value is not None for value in found)
    # what is clipped at 0 and the few that are gained pull it a little
    assert np.mean([value for value in found if value is not None]) == pytest.approx(together, abs=0.03)


def test_by_analysis_of_variance() -> None:
    """Against the textbook's table for equal groups: (MSB - MSW) / (MSB + (k - 1) MSW)."""
    rng = np.random.default_rng(7)
    pairs = simulated_pairs(rng, 12, 5, 0.3, 0.05, 0.3)
    deltas = (pairs.new.astype(float) - pairs.base.astype(float)).reshape(12, 5)
    between = 5 * deltas.mean(axis=1).var(ddof=1)
    within = float(deltas.var(axis=1, ddof=1).mean())
    assert changes_together(pairs) == pytest.approx((between - within) / (between + 4 * within))


def test_where_nothing_can_be_seen() -> None:
    rows = make_rows("bf16", 0.8)
    assert changes_together(join_rows(rows, rows)) is None
    one = make_rows("bf16", 1.0, depths=1)
    assert changes_together(join_rows(one, make_rows("int8", 0.5, depths=1, seed=3))) is None
    assert changes_together(join_rows([], [])) is None
    assert isinstance(join_rows([], []), Pairs)
