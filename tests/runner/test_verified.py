"""What ``--reuse verify`` says: how many cells it looked at, and why where it could compare none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from niah.kv.grammar import parse_one
from niah.runner.verified import Verified
from niah.types import Answer, Failure


def row(answer: str = "7", outcome: str = "answered", logprob: float | None = -1.0) -> Any:
    return SimpleNamespace(answer=answer, outcome=outcome, logprob=logprob)


def reply(text: str = "7", logprob: float | None = -1.25) -> Answer:
    return Answer(text, "stop", prompt_tokens=9, output_tokens=1, logprob=logprob)


def test_cells_answers_and_log_probabilities() -> None:
    tally = Verified()
    for one in (row(), row("8", logprob=-1.0), row(logprob=None)):
        tally.add(one, reply())
    tally.add(row(logprob=-2.0), reply(logprob=-1.0))
    assert tally.to_json() == {
        "asked": 4,
        "cells": 4,
        "same_answers": 3,
        "max_logprob_difference": 1.0,
        "mean_logprob_difference": (0.25 + 0.25 - 1.0) / 3,
    }
    said = tally.sentence(parse_one("int4"))
    assert said.startswith("int4: reuse verified on 4 cells: 3 same answers, log-probabilities within 1.0000")
    assert "(mean difference -0.1667)" in said
    assert "a quantized cache decides close calls" in said
    assert "a quantized cache" not in tally.sentence(parse_one("bf16"))
    assert tally.is_warning


def test_cells_that_cannot_be_compared_are_told_and_not_counted() -> None:
    tally = Verified()
    tally.add(None, reply())
    tally.add(row(outcome="truncated"), reply())
    tally.add(row(outcome="failed"), reply())
    tally.add(row(), Failure("out_of_memory", "no room"))
    said = tally.sentence(parse_one("bf16"))
    assert said.startswith("bf16: reuse is not verified, as none of 4 cells could be compared: 1 not asked in the run")
    assert "0.0000" not in said
    assert "0 cells" not in said
    assert tally.is_warning
    assert tally.to_json()["max_logprob_difference"] is None
    tally.add(row(), reply(logprob=-1.0))
    said = tally.sentence(parse_one("bf16"))
    assert "verified on 1 of 5 cells: 1 same answers, log-probabilities within 0.0000" in said
    assert not tally.is_warning


def test_no_log_probabilities_and_no_cells() -> None:
    tally = Verified()
    assert "has no cell to ask again" in tally.sentence(parse_one("bf16"))
    tally.add(row(logprob=None), reply())
    assert "no log-probabilities to compare" in tally.sentence(parse_one("bf16"))
