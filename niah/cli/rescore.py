"""``niah rescore``: judge a run's stored answers again, without an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from niah.cli.options import Json, Plugin


def rescore(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    scorer: Annotated[
        str | None, typer.Option("--scorer", help="Another scorer than the task's own; see niah list scorers.")
    ] = None,
    plugin: Plugin = None,
    as_json: Json = False,
) -> None:
    """Judge every stored answer again, in place, and write maps and report anew. Asks nothing, costs nothing."""
    from niah import registry
    from niah.api import load, write_outputs
    from niah.report.surroundings import plan_again
    from niah.runner.rescore import rescore as judge
    from niah.store.folder import RunFolder

    for path in plugin or []:
        registry.add_file(path)
    record = load(run)
    if scorer is not None:
        registry.load("scoring", scorer)  # a wrong name is told before the plan is made
    found = judge(plan_again(record.manifest, record.path), RunFolder(record.path), scorer)
    for note in write_outputs(load(record.path)):
        typer.echo(note, err=True)
    if as_json:
        typer.echo(json.dumps({"run": str(record.path), **found.to_json()}))
        return
    before = ", ".join(f"{count:,} by {name}" for name, count in found.before.items())
    typer.echo(
        f"{found.judged:,} answers judged by {found.scorer} ({before} before), {found.turned:,} judgements changed"
    )
