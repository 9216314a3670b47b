"""``niah plan``: what a run would do, cost and see, before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from niah.cli import options as opt
from niah.cli.say import say

if TYPE_CHECKING:
    from niah.config import RunConfig
    from niah.runner.plan import Plan

PRICED = ("input_usd", "cached_usd", "written_usd", "output_usd")


@opt.with_run_flags
def plan(
    flags: opt.RunFlags,
    gpu: Annotated[str | None, typer.Option("--gpu", help="Memory of the card, 80GiB: says what fits.")] = None,
    correlation: Annotated[
        float | None,
        typer.Option("--correlation", help="How far changes of one text go together (default: as earlier runs show)."),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Tokens, KV memory, what the grid can see, and every reason why it cannot run. Loads no weights."""
    show_plan(opt.config_from(flags), as_json=as_json, gpu=gpu, correlation=correlation)


def show_plan(config: RunConfig, *, as_json: bool, gpu: str | None = None, correlation: float | None = None) -> None:
    """Print the plan; exit code 2 when something cannot run."""
    from niah.errors import ConfigError
    from niah.kv.memory.totals import parse_bytes
    from niah.runner.estimate import estimate
    from niah.runner.plan import make_plan

    if correlation is not None and not 0 <= correlation < 1:
        raise ConfigError(f"--correlation cannot be {correlation:g}: give a share from 0 to below 1, such as 0.05.")
    made = make_plan(config, may_sketch=True)
    sight = _sight(made, correlation)
    # what cannot run is not counted: its prompts may not even be buildable
    money = None if made.problems else {**estimate(made).to_json(), "prices": price_list(made)}
    document = {**made.to_json(sight["detectable_drop"], parse_bytes(gpu) if gpu else None, money), **sight}
    if not as_json:
        _print(made, document)
    else:
        typer.echo(json.dumps(document))
    raise typer.Exit(2 if made.problems else 0)


def _sight(made: Plan, correlation: float | None) -> dict[str, Any]:
    """The smallest drop that the grid sees, and what that takes for granted."""
    from niah.report.data.earlier import Correlation, assumed_correlation
    from niah.stats.power import ALPHA, POWER, detectable_drop

    contexts = len(made.lengths) * made.config.grid.trials
    compared = max(1, len(made.kvs) - 1)
    if correlation is not None:
        assumed = Correlation(correlation, "as asked")
    else:
        assumed = assumed_correlation(Path(made.config.out), made.info.name)
    return {
        "detectable_drop": detectable_drop(contexts * len(made.depths), contexts, assumed.value, ALPHA / compared),
        "power": POWER,
        "assumed_correlation": assumed.value,
        "correlation_source": assumed.source,
        "settings_compared": compared,
    }


def price_list(made: Plan) -> dict[str, Any] | None:
    """The prices that a plan counts with, as they go into the record of a run."""
    return None if made.prices is None else made.prices.to_json()


def _money(made: Plan, money: dict[str, Any]) -> list[str]:
    """Lines on what the run costs; none for a model that nobody bills."""
    from niah.report.data.cost import dollars
    from niah.runner.prices import why_unpriced

    prices = money["prices"]
    if prices is None or money["cost_usd"] is None:
        return [] if made.info.provider is None else [f"money       unknown: {why_unpriced(made.info)}"]
    cached = f" ({money['cached_tokens']:,} from the prefix cache)" if money["cached_tokens"] else ""
    listed = ", ".join(f"{name.removesuffix('_usd')} ${prices[name]:g}" for name in PRICED if name in prices)
    most, batch = dollars(money["uncached_usd"]), dollars(money["batch_usd"])
    tokens = f"{money['prompt_tokens']:,} prompt tokens{cached} and {money['output_tokens']:,} output"
    if made.config.batch:
        first = f"{batch} as batches; at most {most} prompt by prompt"
    else:
        or_batch = f", {batch} with --batch" if made.backend.has_batches else ""
        first = f"{dollars(money['cost_usd'])}; at most {most} without the prefix cache{or_batch}"
    lines = [
        f"money       {first}",
        f"            {tokens}, canaries included",
        f"            per million tokens {listed} ({prices['source']}, {prices['date']})",
    ]
    limit = made.config.max_cost
    if limit is not None and money["cost_usd"] > limit:
        lines.append(f"            more than --max-cost {dollars(limit)}: the run would stop before its end")
    return lines


def _print(made: Any, document: dict[str, Any]) -> None:
    from niah.grid import length_label, off_words
    from niah.kv.memory.totals import human_bytes

    most = made.config.grid.trials
    trials = f"{made.first_trials} to {most}" if made.config.grid.auto_trials else most
    grid = f"{len(made.kvs)} KV settings × {len(made.lengths)} lengths × {len(made.depths)} depths × {trials} trials"
    lines = [
        f"{made.info.name} · {made.backend.name} · {grid} = {made.cell_count:,} cells",
        f"contexts    {document['contexts']:,}: each is processed once for all its questions",
        f"tokens      {document['tokens_unique']:,} unique, {document['tokens_naive']:,} prompt by prompt (k = 1,024)",
    ]
    for entry in document["kv_memory"]:
        if entry["length"] == max(made.lengths) and entry["logical_bytes"] is not None:
            room = {True: ", fits", False: ", does not fit", None: ""}[entry["fits"]]
            size = human_bytes(entry["logical_bytes"])
            lines.append(f"KV memory   {entry['kv']} at {length_label(entry['length'])}: {size}{room}")
    if made.sketched:
        lines += [
            f"estimate    {made.sketched}:",
            "            nobody was asked, so tokens and money are estimates, and",
            "            whether there is such a model is not known",
        ]
    if document["money"] is not None:
        lines += _money(made, document["money"])
    drop = document["detectable_drop"]
    pairs = len(made.lengths) * len(made.depths) * most
    sees = f"a drop of {drop * 100:g} points or more (80 % power)" if drop else _too_few(len(made.lengths) * most)
    lines.append(f"sees        {pairs:,} pairs a setting: {sees}")
    if drop:
        lines += _taken_for_granted(document)
    if made.depths_off:
        squares = len(made.lengths) * len(made.depths)
        lines.append(f"depths      {off_words(made.depths_off, squares)}")
    lines += [f"refused     {problem.sentence()}" for problem in made.problems] or ["refused     nothing"]
    if made.config.grid.auto_trials:
        lines.append("trials      auto: the figures above are the first round's, what it sees is the last one's")
    if made.config.difficulty:
        lines.append("difficulty  auto: the task's rung is chosen by a probe when the run begins")
    for line in lines:
        say(line)


def _taken_for_granted(document: dict[str, Any]) -> list[str]:
    """What the smallest visible drop rests on."""
    compared, source = document["settings_compared"], document["correlation_source"]
    lines = [f"            if changes of one text are correlated by {document['assumed_correlation']:.2g} ({source})"]
    if compared > 1:
        lines.append(
            f"            in one of {compared} settings that are compared together, whose verdicts are corrected"
        )
    return lines


def _too_few(contexts: int) -> str:
    from niah.stats.power import MIN_CONTEXTS

    if contexts < MIN_CONTEXTS:
        return f"too few for a verdict, which needs {MIN_CONTEXTS} contexts (lengths × trials); these are {contexts}"
    return "too few to see any drop reliably"
