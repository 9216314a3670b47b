from __future__ import annotations

import numpy as np
import pytest

from niah.stats.pairs import join_rows
from niah.stats.ushape import ushape, ushape_change, ushape_changes, ushapes
from niah.store.schema import Row
from tests.helpers.made_rows import make_row, make_rows

ENDS = {0.0: 1.0, 0.25: 0.6, 0.5: 0.2, 0.75: 0.6, 1.0: 1.0}


def _exact(kv: str, share: dict[float, float], length: int = 512, trials: int = 10) -> list[Row]:
    """Rows whose shares are met exactly; which trials miss differs by depth."""
    return [
        make_row(kv, length, depth, (trial + 3 * i) % trials, trial < round(hits * trials))
        for i, (depth, hits) in enumerate(share.items())
        for trial in range(trials)
    ]


def test_by_hand() -> None:
    shape = ushape(_exact("bf16", ENDS))
    # ends 1.0, middle (0.6 + 0.2 + 0.6) / 3
    assert shape.index is not None
    assert shape.index.value == pytest.approx(1 - 1.4 / 3)
    assert shape.index.ci.low > 0
    # 1.0, 0.6, 0.2 over half the text falls by 0.8
    assert shape.primacy is not None
    assert shape.recency is not None
    assert shape.primacy.value == pytest.approx(-1.6)
    assert shape.recency.value == pytest.approx(1.6)


def test_slopes_are_least_squares() -> None:
    rows = make_rows("bf16", lambda _, depth: 0.9 - 0.5 * depth, depths=11, trials=30)
    shape = ushape(rows)
    depths = [d / 10 for d in range(6)]
    shares = [np.mean([float(bool(row.correct)) for row in rows if row.depth == d]) for d in depths]
    assert shape.primacy is not None
    assert shape.primacy.value == pytest.approx(np.polyfit(depths, shares, 1)[0])


def test_a_full_score_from_few_trials_is_not_certain() -> None:
    shape = ushape(make_rows("bf16", 1.0, trials=3))
    assert shape.index is not None
    assert shape.index.value == 0
    assert shape.index.ci.low < -0.05
    assert shape.index.ci.high > 0.05


def test_change_against_the_reference() -> None:
    flat, bent = _exact("bf16", dict.fromkeys(ENDS, 1.0)), _exact("int4", ENDS)
    change = ushape_change(join_rows(flat, bent))
    assert change.index is not None
    assert change.index.value == pytest.approx(1 - 1.4 / 3)
    assert change.index.ci.low > 0
    same = ushape_change(join_rows(flat, flat)).index
    assert same is not None
    assert same.value == 0
    assert same.ci.low < 0 < same.ci.high


def test_depths_that_do_not_cover_it() -> None:
    assert ushape(make_rows("bf16", 1.0, depths=1)).index is None
    only_ends = [row for row in make_rows("bf16", 1.0) if row.depth in (0.0, 1.0)]
    shape = ushape(only_ends)
    assert (shape.index, shape.primacy, shape.recency) == (None, None, None)
    assert ushape([]).index is None


def test_by_length_and_over_all() -> None:
    rows = _exact("bf16", ENDS, 512) + _exact("bf16", dict.fromkeys(ENDS, 1.0), 1024)
    found = ushapes(rows)
    assert list(found) == [512, 1024, None]
    values = [shape.index.value if shape.index else None for shape in found.values()]
    assert values == pytest.approx([1 - 1.4 / 3, 0.0, (1 - 1.4 / 3) / 2])
    assert list(ushape_changes(join_rows(rows, rows))) == [512, 1024, None]


def test_interval_holds_the_truth() -> None:
    covered = 0
    runs = 120
    for seed in range(runs):
        rows = make_rows("x", lambda _, d: 0.95 if d in (0.0, 1.0) else 0.7, lengths=(512,), trials=20, seed=seed)
        index = ushape(rows).index
        assert index is not None
        covered += index.ci.low <= 0.25 <= index.ci.high
    assert covered / runs >= 0.92
