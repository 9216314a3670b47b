from __future__ import annotations

import json

import pytest

from niah.stats.effective import effective_length, trials_needed
from niah.stats.intervals import wilson
from tests.helpers.made_rows import make_row, make_rows


def test_the_longest_length_that_holds_at_every_depth() -> None:
    rows = make_rows("bf16", lambda length, depth: 0.5 if length == 4096 and depth == 0.5 else 1.0,
                     lengths=(512, 1024, 4096, 8192), trials=25)  # fmt: skip
    found = effective_length(rows)
    assert found.length == found.likely == 1024, "8k holds, but what lies before it does not"
    assert found.limit is not None
    assert (found.limit.length, found.limit.depth, found.limit.trials) == (4096, 0.5, 25)
    assert not found.too_few
    json.dumps(found.to_json(), allow_nan=False)


def test_few_trials_can_not_clear_the_bar() -> None:
    found = effective_length(make_rows("bf16", 1.0, trials=10))
    assert found.length is None
    assert found.likely == 1024
    assert found.too_few
    assert found.trials_needed == 22
    assert effective_length(make_rows("bf16", 1.0, trials=10), bar=0.7).length == 1024


@pytest.mark.parametrize("bar", [0.05, 0.5, 0.85, 0.9, 0.99])
def test_trials_needed_is_the_first_that_clears(bar: float) -> None:
    count = trials_needed(bar)
    assert wilson(count, count).low > bar
    assert count == 1 or wilson(count - 1, count - 1).low <= bar


def test_a_depth_without_an_answer_holds_nothing() -> None:
    rows = make_rows("bf16", 1.0, trials=30)
    rows = [make_row("bf16", r.length, r.depth, r.trial, None) if r.depth == 0.25 else r for r in rows]
    assert effective_length(rows).length is None
    assert effective_length([]).length is None


@pytest.mark.parametrize("bar", [0.0, 1.0, -1.0])
def test_impossible_bar(bar: float) -> None:
    with pytest.raises(ValueError, match="bar"):
        effective_length([], bar)
