"""Seconds that are a share of a context, and those that are a whole, are named for what they are."""

from __future__ import annotations

from importlib import resources

from niah.cli.cell import _time
from niah.types import Timing
from tests.helpers.made_rows import make_row


def test_the_cell_command_names_them() -> None:
    row = make_row("bf16", 512, 0.5, 0, correct=True, timing=Timing(prefill_s=0.5, first_token_s=6.561, total_s=0.656))
    assert _time(row) == (
        "0.656 s, this cell's share of its context, 0.500 s of it prefill; "
        "first token 6.561 s after the whole context was begun"
    )
    assert (
        _time(make_row("bf16", 512, 0.5, 0, correct=True, timing=Timing(total_s=0.656)))
        == "0.656 s, this cell's share of its context"
    )
    assert _time(make_row("bf16", 512, 0.5, 0, correct=True, timing=Timing())) == "not known"


def test_the_drawer_names_them() -> None:
    script = (resources.files("niah.report.page") / "templates" / "report.js").read_text()
    assert '"prefill, this cell\'s share of its context", seconds(get(cell, "prefill_s"))' in script
    assert '"first token, from the start of the whole context", seconds(get(cell, "first_token_s"))' in script
    assert '"total, this cell\'s share of its context", seconds(get(cell, "total_s"))' in script


def test_the_package_says_that_it_is_typed() -> None:
    assert (resources.files("niah") / "py.typed").is_file()
