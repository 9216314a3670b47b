from __future__ import annotations

import pytest

from niah.stats.holm import holm


def test_by_hand() -> None:
    # sorted 0.005 ×4, 0.01 ×3, 0.03 ×2, 0.04 ×1; the last is lifted to the one before
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_never_above_one_and_never_below_the_p_itself() -> None:
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


def test_impossible() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.1, 1.2])
