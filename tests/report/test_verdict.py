from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from niah.report.page.sections import run_view
from niah.report.text.verdict import (
    headline,
    hidden_damage,
    reach_lines,
    run_comparisons,
    setting_comparisons,
    verdict_lines,
)
from niah.store.read import RunRecord
from niah.store.schema import Row


def two_settings(cell: Callable[..., Row], wrong: Any, trials: int = 12, logprob: Any = None, **changes: Any) -> Any:
    """bf16 all right; int8 wrong where ``wrong`` says so."""
    rows = []
    for length in (512, 1024):
        for depth in (0.0, 0.5, 1.0):
            for trial in range(trials):
                pair = f"{length}-{depth}-{trial}"
                for kv in ("bf16", "int8"):
                    right = kv == "bf16" or not wrong(length, depth, trial)
                    sure = {} if logprob is None else {"logprob": -0.1 if kv == "bf16" else -0.1 + logprob}
                    name = f"{kv}-{pair}"
                    rows.append(
                        cell(
                            correct=right,
                            kv=kv,
                            length=length,
                            depth=depth,
                            trial=trial,
                            pair_id=pair,
                            cell_id=name,
                            **sure,
                        )
                    )
    return RunRecord(Path("run"), {"reference": "bf16", **changes}, tuple(rows))


def test_worse_is_said_with_its_interval(cell: Callable[..., Row]) -> None:
    record = two_settings(cell, lambda length, depth, trial: depth == 0.5)
    (found,) = setting_comparisons(record)
    said = headline([found], "bf16")
    assert said.startswith("Against bf16: int8 is worse by 33.3 points (95 % interval −")
    (line,) = verdict_lines([found])
    assert (line.verdict, line.tone, line.change, line.pairs) == ("worse", "bad", "−33.3 pt", "72 in 24 texts")
    assert line.moved == "24 lost, 0 gained"
    assert line.p == "<0.001"


def test_few_pairs_and_no_difference_say_so(cell: Callable[..., Row]) -> None:
    few = two_settings(cell, lambda *_: False, trials=1)
    assert headline(setting_comparisons(few), "bf16") == (
        "Against bf16: too few contexts (2, and a verdict needs 6) to say for int8."
    )
    many = two_settings(cell, lambda *_: False, trials=60)
    assert headline(setting_comparisons(many), "bf16").startswith("Against bf16: int8 is equivalent (0 points")


def test_damage_that_accuracy_does_not_show_is_said(cell: Callable[..., Row]) -> None:
    record = two_settings(cell, lambda *_: False, logprob=-0.4)
    found = setting_comparisons(record)
    assert hidden_damage(found).startswith("The right answer became less likely beyond doubt")
    assert "int8 by −0.400 nats" in hidden_damage(found)
    assert hidden_damage(setting_comparisons(two_settings(cell, lambda *_: False, logprob=0.0))) == ""


def test_broken_settings_are_not_judged(cell: Callable[..., Row]) -> None:
    record = two_settings(cell, lambda *_: True, settings={"bf16": {}, "int8": {"broken": True}})
    assert headline(setting_comparisons(record), "bf16") == "Against bf16: int8 is broken and not judged."
    assert [line.name for line in reach_lines(record)] == ["bf16"]


def test_why_nothing_is_compared(cell: Callable[..., Row], record: RunRecord) -> None:
    alone = RunRecord(Path("run"), {"reference": "int8"}, (cell(),))
    assert run_view(alone, "cividis").headline.startswith("Only int8, the reference, was run")
    assert run_view(replace(alone, manifest={}), "cividis").headline == "Only int8 was run, so nothing is compared."
    apart = replace(alone, rows=(cell(), cell(kv="bf16", pair_id="other", cell_id="other")))
    assert run_view(apart, "cividis").headline.startswith("No cell was answered under both int8 and another setting")
    assert "no reference setting" in run_view(replace(apart, manifest={}), "cividis").headline
    assert run_view(replace(alone, rows=()), "cividis").headline.startswith("No cell has been run yet")


def test_a_run_against_itself_is_never_worse(record: RunRecord) -> None:
    found, notes = run_comparisons(record, replace(record, path=Path("again")))
    assert {c.verdict for c in found} <= {"equivalent", "too few to say"}
    assert [c.new for c in found] == record.kvs()
    assert all(c.delta == 0 for c in found)
    assert notes == []


def test_runs_with_nothing_in_common_say_why(record: RunRecord, cell: Callable[..., Row]) -> None:
    other = RunRecord(Path("other"), {"asked": {"task": "single"}}, (cell(pair_id="elsewhere"),))
    found, notes = run_comparisons(record, other)
    assert found == []
    assert "nothing can be compared" in notes[0]


def test_how_far_it_holds(cell: Callable[..., Row]) -> None:
    record = two_settings(cell, lambda length, depth, trial: length == 1024 and depth == 0.5, trials=30)
    bf16, int8 = reach_lines(record)
    assert (bf16.length, bf16.why) == ("1,024 tokens", "every length asked holds")
    assert int8.length == "512 tokens"
    assert int8.why == "ends at 1,024 tokens at depth 50 %: 0 of 30 right"
    assert int8.index.startswith("+50 (")
    assert bf16.change == "–"
    assert int8.change.startswith("+50 (")
