"""What every task keeps to, own or third-party: a new task file joins these tests by being there."""

from __future__ import annotations

from typing import Any

import pytest

from niah import registry
from niah.prompts.segments import count_whole
from niah.prompts.task import TaskOptions, TaskPlugin
from niah.types import Case

DEPTHS = [0.0, 0.25, 0.5, 0.75, 1.0]
NAMES = registry.names("tasks")
SEEDS = range(6)


def nothing(text: str) -> bool:
    return False


def all_cases(task: TaskPlugin[Any], options: TaskOptions, seed: int) -> list[Case]:
    return [case for lay in task.layouts(options, DEPTHS) for case in task.make(options, seed, lay, nothing)]


def settings(name: str) -> list[tuple[TaskPlugin[Any], TaskOptions]]:
    """A task with its own options, and with the answer's start and the kind of value changed where it has them."""
    task: TaskPlugin[Any] = registry.load("tasks", name)
    fields = task.options.model_fields
    changes: list[dict[str, object]] = [{}]
    if "answer_prefix" in fields:
        changes.append({"answer_prefix": False})
    if "values" in fields:
        changes += [{"values": kind} for kind in ("word", "uuid")]
    return [(task, task.options.model_validate(change)) for change in changes]


EVERY = [setting for name in NAMES for setting in settings(name)]
IDS = [f"{task.name}-{i}" for i, (task, _) in enumerate(EVERY)]
every = pytest.mark.parametrize(("task", "options"), EVERY, ids=IDS)


def test_the_tasks_are_there() -> None:
    assert {"multikey", "single", "passkey"} <= set(NAMES)
    assert "words" not in NAMES


@every
def test_describes_itself(task: TaskPlugin[Any], options: TaskOptions) -> None:
    assert task.name in NAMES
    assert task.summary
    assert task.version >= 1
    with pytest.raises(ValueError, match="Extra inputs"):
        task.options.model_validate({"no_such_option": 1})


@every
def test_layouts_ask_every_depth_once(task: TaskPlugin[Any], options: TaskOptions) -> None:
    for depths in (DEPTHS, [0.5], [i / 40 for i in range(41)]):
        layouts = task.layouts(options, depths)
        assert sorted(depth for layout in layouts for depth in layout.asked) == depths
        assert all(0 <= depth <= 1 for layout in layouts for depth in layout.hidden)


@every
def test_same_seed_same_case(task: TaskPlugin[Any], options: TaskOptions) -> None:
    for seed in SEEDS:
        assert all_cases(task, options, seed) == all_cases(task, options, seed)
    assert len({case.expected for seed in SEEDS for case in all_cases(task, options, seed)[:1]}) == len(SEEDS)


@every
def test_cases_fit_their_layout(task: TaskPlugin[Any], options: TaskOptions) -> None:
    for layout in task.layouts(options, DEPTHS):
        cases = task.make(options, 1, layout, nothing)
        assert [case.depth for case in cases] == list(layout.asked)
        assert {(case.needles, case.instruction) for case in cases} == {(cases[0].needles, cases[0].instruction)}
        needles = cases[0].needles
        assert sorted(needle.depth for needle in needles if needle.asked) == sorted(layout.asked)
        assert sorted(needle.depth for needle in needles if not needle.asked) == sorted(layout.hidden)
        assert len({needle.key for needle in needles}) == len({needle.value for needle in needles}) == len(needles)


@every
def test_the_answer_stands_in_its_needle_only(task: TaskPlugin[Any], options: TaskOptions) -> None:
    for seed in SEEDS:
        for case in all_cases(task, options, seed):
            asked = [needle for needle in case.needles if needle.value in case.expected]
            assert [needle.depth for needle in asked] == [case.depth]
            for value in case.expected:
                assert sum(count_whole(needle.text, value) for needle in case.needles) == 1
                for text in (case.instruction, case.question, case.answer_prefix):
                    assert value.lower() not in text.lower()
            assert not set(case.expected) & set(case.distractors)


@every
def test_scores(task: TaskPlugin[Any], options: TaskOptions) -> None:
    for seed in SEEDS:
        for case in all_cases(task, options, seed):
            score = registry.load("scoring", case.scorer).score
            for value in case.expected:
                assert score(value, case).value == 1.0
            assert score(case.gold, case).correct
            assert score(case.answer_prefix + case.gold, case).correct
            for echo in (case.question, case.instruction, case.answer_prefix, case.instruction + case.question, ""):
                assert score(echo, case).value == 0.0
                assert score(echo, case).why
            for value in case.distractors:
                assert not score(value, case).correct
                assert "the value of" in score(value, case).why


@every
def test_a_candidate_in_the_haystack_is_not_used(task: TaskPlugin[Any], options: TaskOptions) -> None:
    layout = task.layouts(options, DEPTHS)[0]
    first = task.make(options, 1, layout, nothing)[0]
    taken = {first.needles[0].value}
    again = task.make(options, 1, layout, lambda text: text in taken)[0]
    assert taken.isdisjoint(needle.value for needle in again.needles)
    assert [n.value for n in again.needles[1:]] == [n.value for n in first.needles[1:]]


@every
def test_completeness_never_changes_the_score(task: TaskPlugin[Any], options: TaskOptions) -> None:
    for case in all_cases(task, options, 2):
        score = registry.load("scoring", case.scorer).score
        others = case.distractors[:1] or ("none",)
        for reply in (
            f"{case.gold}. Also {others[0]}.\nAnd more",
            f" {others[0]}, then {case.expected[0]}.",
            " no\nidea",
        ):
            assert not task.is_complete("", case)
            final = score(reply, case).correct
            complete = [end for end in range(len(reply) + 1) if task.is_complete(reply[:end], case)]
            assert all(score(reply[:end], case).correct == final for end in complete)
        assert task.is_complete(f"{case.gold}. ", case)
        assert not task.is_complete(case.gold[:-1], case)
