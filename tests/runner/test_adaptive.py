"""Rounds of ``--trials auto``: what is granted, from which rows, and when it ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from niah.runner.adaptive import Rounds
from niah.runner.plan import Plan
from niah.store.schema import Row
from tests.helpers.made_rows import make_rows
from tests.helpers.scripted import planned


class Judge:
    """Says what it is told is open, and keeps what it was shown."""

    def __init__(self, *rounds: Mapping[str, str]) -> None:
        self._rounds = iter(rounds)
        self.shown: list[tuple[int, list[str], str | None, list[str]]] = []

    def __call__(
        self, rows: Sequence[Row], kvs: Sequence[str], reference: str | None, broken: Collection[str]
    ) -> Mapping[str, str]:
        self.shown.append((len(rows), list(kvs), reference, list(broken)))
        return next(self._rounds)


def _plan() -> Plan:
    return planned(kv=["bf16", "int8", "int4"], trials="auto:20")


def _trials(plan: Plan) -> dict[str, int]:
    return {kv.name: plan.trials_of(kv.name) for kv in plan.kvs}


def test_trials_double_for_what_is_open_and_its_reference_up_to_the_most() -> None:
    plan = _plan()
    rounds = Rounds(plan, Judge({"int8": "open"}, {"int8": "open"}, {"int8": "open"}))
    granted = []
    while rounds.grow([], []):
        granted.append(_trials(plan))
    assert granted == [{"bf16": 12, "int8": 12, "int4": 6}, {"bf16": 20, "int8": 20, "int4": 6}]
    assert rounds.stopped("finished") == "20 trials a cell were reached; still open: int8"


def test_it_ends_when_nothing_is_open() -> None:
    plan = _plan()
    rounds = Rounds(plan, Judge({}))
    assert not rounds.grow([], [])
    assert _trials(plan) == {"bf16": 6, "int8": 6, "int4": 6}
    assert rounds.to_json("finished")["stopped"] == "every verdict is settled"
    assert rounds.sentence == "after 6 trials a cell, open: nothing"


def test_a_resumed_run_is_granted_the_same_whatever_later_rounds_left() -> None:
    judge = Judge({"int8": "open"}, {})
    rounds = Rounds(_plan(), judge)
    rows = make_rows("int8", 0.5, lengths=(512,), depths=2, trials=20)
    rounds.grow(rows, ["int4"])
    rounds.grow(rows, ["int4"])
    assert judge.shown == [
        (6 * 2, ["bf16", "int8", "int4"], "bf16", ["int4"]),
        (12 * 2, ["bf16", "int8"], "bf16", ["int4"]),
    ]


def test_the_record_tells_why_it_ended_early() -> None:
    rounds = Rounds(_plan(), Judge({"int8": "open"}))
    assert "interrupted" in rounds.stopped("interrupted")
    assert "the run failed" in rounds.stopped("failed")
    assert "a limit on time, money or tokens" in rounds.stopped("budget")
    rounds.grow([], [])
    record = rounds.to_json("budget")
    assert (record["first"], record["most"], record["trials"]["int8"]) == (6, 20, 12)
    assert record["rounds"] == [{"trials": 6, "undecided": {"int8": "open"}}]
