"""``niah run``: measure."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from niah.cli import options as opt


@opt.with_run_flags
def run(
    flags: opt.RunFlags,
    fresh: Annotated[bool, typer.Option("--fresh/--resume", help="A new folder, or go on with the old one.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan only.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Hide needles, ask for them under each KV setting, and write heatmaps, KV memory and a report.

    Without arguments: SmolLM2-135M on this machine, bf16 against int8 and int4.
    The same command goes on where it was interrupted.
    """
    asked = opt.config_from(flags)
    if dry_run:
        from niah.cli.plan import show_plan

        show_plan(asked, as_json=as_json)
        return
    from niah.api import execute, plan_run
    from niah.cli.progress import Progress

    progress = Progress()
    with progress.preparing(asked):
        plan = plan_run(asked)
    with progress:
        outcome = execute(plan, [progress], fresh=fresh, command=opt.command_line())
    progress.summary(outcome)
    if as_json:
        typer.echo(json.dumps(outcome.to_json()))
    raise typer.Exit(outcome.exit_code)
