"""``--difficulty auto``: how hard the task must be for this model, so that a KV setting can lose something and be seen.

A task that the reference always solves hides damage, one that it never solves has nothing to lose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from niah import registry
from niah.config import RunConfig
from niah.engines.base import Session, SessionRequest
from niah.errors import ConfigError, boundary
from niah.runner.budget import Spending
from niah.runner.plan import Plan, make_plan
from niah.runner.rows import outcome_of
from niah.types import Answer

LOWEST, HIGHEST = 0.6, 0.9
_AIM = (LOWEST + HIGHEST) / 2
PROBE_TRIALS = 2
_ROOM = 0.9
# the probe's texts are not those of the run: cells that chose the difficulty must not be counted again
_PROBE_SEED = 7_919


def rungs(plan: Plan) -> list[dict[str, Any]]:
    """Task options from easy to hard, as far as they fit the shortest length.

    Raises:
        ConfigError: the task says no rungs, or none fits.
    """
    task = plan.builder.task
    if task.rungs is None:
        names = [name for name, its in registry.load_all("tasks")[0].items() if its.rungs is not None]
        raise ConfigError(
            f"the task {task.name!r} has no rungs of difficulty to choose from; use --task {' or '.join(names)}, or "
            "leave out --difficulty."
        )
    found = []
    for changes in task.rungs(plan.builder.task_options, plan.depths):
        if make_plan(_tight_config(plan, changes)).problems:
            break  # harder ones need more room still
        found.append(dict(changes))
    if not found:
        shortest = min(plan.lengths)
        raise ConfigError(
            f"no rung of the task {task.name!r} fits {shortest} tokens; ask for longer ones by --lengths."
        )
    return found


def resolved(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """The config with the chosen options in place of ``difficulty``."""
    task = config.task.model_copy(update={"options": {**config.task.options, **changes}})
    return config.model_copy(update={"task": task, "difficulty": None})


def _probe_config(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    grid = config.grid.model_copy(
        update={"trials": PROBE_TRIALS, "auto_trials": False, "seed": config.grid.seed + _PROBE_SEED}
    )
    return resolved(config, changes).model_copy(update={"grid": grid})


def _tight_config(plan: Plan, changes: Mapping[str, Any]) -> RunConfig:
    """One text a tenth shorter than the shortest: needles of other trials may be longer than those built here."""
    config = _probe_config(plan.config, changes)
    grid = config.grid.model_copy(update={"lengths": str(int(min(plan.lengths) * _ROOM)), "trials": 1})
    return config.model_copy(update={"grid": grid})


async def choose(plan: Plan) -> dict[str, Any]:
    """Ask the reference (or the first setting) a few cells per rung, and take the one nearest to 75 %.

    Returns:
        What ``run.json`` records: ``chosen`` task options, ``accuracy`` found with them, the ``probes``, ``why``,
        and what the probes were billed.

    Raises:
        BackendUnavailable: the engine cannot be opened. ConfigError: as ``rungs``.
    """
    steps = rungs(plan)
    spending = Spending.of(plan, (), 0.0, 0)
    probes: dict[int, dict[str, Any]] = {}
    async with plan.backend.open(plan.options, plan.info) as engine:
        request = SessionRequest(
            kv=plan.kvs[0],
            max_length=max(plan.lengths),
            reuse=plan.config.reuse != "off",
            is_complete=plan.builder.task.is_complete,
        )
        async with engine.session(request) as session:
            low, high = 0, len(steps) - 1
            while low <= high:
                middle = (low + high) // 2
                config = _probe_config(plan.config, steps[middle])
                probes[middle] = await _probe(session, config, steps[middle], spending)
                share = probes[middle]["accuracy"]
                if share is None:
                    raise ConfigError("the probe for --difficulty auto got no answer at all; see niah doctor.")
                if LOWEST <= share <= HIGHEST:
                    break
                low, high = (middle + 1, high) if share > HIGHEST else (low, middle - 1)
    best = min(probes, key=lambda i: (abs(probes[i]["accuracy"] - _AIM), -i))
    return {
        "asked": "auto",
        "kv": plan.kvs[0].name,
        "chosen": steps[best],
        "accuracy": probes[best]["accuracy"],
        "probes": [probes[i] for i in sorted(probes)],
        "why": _why(probes[best]["accuracy"], best, len(steps)),
        "cost_usd": spending.usd if plan.prices is not None else None,
        "tokens": spending.tokens,
    }


async def _probe(session: Session, config: RunConfig, changes: dict[str, Any], spending: Spending) -> dict[str, Any]:
    plan = make_plan(config)
    answered = right = 0
    for group in plan.groups:
        prompts = plan.builder.prompts(group)
        with boundary("engine", "the probe for --difficulty auto"):
            replies = await session.answer(prompts)
        spending.beside(replies)
        for prompt, reply in zip(prompts, replies, strict=True):
            if isinstance(reply, Answer) and outcome_of(plan, prompt, reply) == "answered":
                answered += 1
                right += registry.load("scoring", prompt.case.scorer).score(reply.text, prompt.case).correct
    return {"options": changes, "answered": answered, "accuracy": right / answered if answered else None}


def _why(share: float, index: int, count: int) -> str:
    found = f"{share * 100:.0f} % right in the probe"
    if LOWEST <= share <= HIGHEST:
        return f"{found}, between {LOWEST * 100:.0f} and {HIGHEST * 100:.0f} %"
    if share > HIGHEST and index == count - 1:
        return f"{found}: the hardest rung that fits is still easy"
    if share < LOWEST and index == 0:
        return f"{found}: the easiest rung is still hard"
    return f"{found}: no rung lies between {LOWEST * 100:.0f} and {HIGHEST * 100:.0f} %, this one is nearest"


def sentence(record: dict[str, Any]) -> str:
    """What was chosen, for people."""
    options: Sequence[str] = [f"{name}={value}" for name, value in record["chosen"].items()]
    return f"difficulty auto: {', '.join(options)} ({record['why']})"
