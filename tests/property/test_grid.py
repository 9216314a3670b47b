from __future__ import annotations

import contextlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from niah.errors import ConfigError
from niah.grid import MAX_DEPTHS, MAX_LENGTH, format_lengths, parse_depths, parse_lengths


@given(st.sets(st.integers(1, MAX_LENGTH), min_size=1, max_size=20))
def test_lengths_round_trip(lengths: set[int]) -> None:
    ordered = tuple(sorted(lengths))
    assert parse_lengths(format_lengths(ordered)) == ordered


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(2, 50))
def test_ranges_keep_their_ends_and_ascend(low: int, span: int, steps: int) -> None:
    high = low + span
    doubled = parse_lengths(f"{low}..{high}")
    assert (doubled[0], doubled[-1]) == (low, high)
    assert all(b == 2 * a for a, b in pairwise(doubled[:-1]))
    if steps > span + 1:
        with pytest.raises(ConfigError, match="do not fit"):
            parse_lengths(f"{low}..{high}:{steps}")
    elif low > 100_000 and span > 64 * steps:
        stepped = parse_lengths(f"{low}..{high}:{steps}")
        assert (stepped[0], stepped[-1], len(stepped)) == (low, high, steps)


@given(st.integers(1, MAX_DEPTHS), st.booleans())
def test_depth_counts(count: int, sigmoid: bool) -> None:
    depths = parse_depths(f"sigmoid:{count}" if sigmoid else str(count))
    assert len(depths) == count
    assert list(depths) == sorted(depths)
    assert all(0 <= depth <= 1 for depth in depths)
    if count > 1:
        assert (depths[0], depths[-1]) == (0.0, 1.0)


@given(st.text(max_size=20))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for parse in (parse_lengths, parse_depths):
        values: tuple[float, ...] | None = None
        with contextlib.suppress(ConfigError):
            values = parse(text)
        assert values is None or len(values) > 0
