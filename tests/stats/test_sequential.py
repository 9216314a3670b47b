from __future__ import annotations

from niah.stats.sequential import undecided
from tests.helpers.made_rows import make_rows


def test_open_verdicts_are_named_with_their_interval() -> None:
    rows = [
        *make_rows("bf16", 0.9, trials=60),
        *make_rows("int8", 0.9, trials=60, seed=1),
        *make_rows("int4", 0.4, trials=60, seed=2),
        *make_rows("same", 0.9, trials=60),
        *make_rows("rubbish", 0.0, trials=60),
    ]
    found = undecided(rows, ["bf16", "int8", "int4", "same", "rubbish"], "bf16", ["rubbish"])
    assert list(found) == ["int8"]
    assert "points at 99 % on 600 pairs" in found["int8"]
    assert undecided(rows, ["bf16", "int8"], "bf16", ["bf16"]) == {}, "nothing can be said against a broken reference"


def test_a_setting_without_answers_stays_open() -> None:
    assert undecided(make_rows("bf16", 0.9), ["bf16", "int8"], "bf16") == {"int8": "no answered pair yet"}


def test_alone_a_setting_is_known_when_its_interval_is_narrow() -> None:
    assert list(undecided(make_rows("bf16", 0.5, trials=6), ["bf16"], "bf16")) == ["bf16"]
    assert undecided(make_rows("bf16", 0.5, trials=60), ["bf16"], "bf16") == {}
    assert list(undecided([], ["bf16"], None)) == ["bf16"]
