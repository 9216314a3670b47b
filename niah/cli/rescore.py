"""``niah rescore``: judge a run's stored answers again, without an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from niah.cli.options import Json, Plugin, TrustRun
from niah.cli.say import say


def rescore(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    scorer: Annotated[
        str | None, typer.Option("--scorer", help="Another scorer than the task's own; see niah list scorers.")
    ] = None,
    plugin: Plugin = None,  # noqa: ARG001 (loaded by the option)
    trust_run: TrustRun = False,
    as_json: Json = False,
) -> None:
    """Judge every stored answer again, in place, and write maps and report anew. Asks nothing, costs nothing."""
    from niah import registry
    from niah.api import load, write_outputs
    from niah.runner.rescore import rescore as judge

    record = load(run)
    if scorer is not None:
        registry.load("scoring", scorer)  # a wrong name is told before the plan is made
    found = judge(record, scorer, trust=trust_run, note=lambda text: say(text, err=True))
    for note in write_outputs(load(record.path), trust=trust_run):
        say(note, err=True)
    if as_json:
        typer.echo(json.dumps({"run": str(record.path), **found.to_json()}))
        return
    before = ", ".join(f"{count:,} by {name}" for name, count in found.before.items())
    say(f"{found.judged:,} answers judged by {found.scorer} ({before} before), {found.turned:,} judgements changed")
