"""``niah run``: measure."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from niah.cli import options as opt


def run(
    config: opt.ConfigFile = None,
    backend: opt.Backend = None,
    model: opt.Model = None,
    kv: opt.KV = None,
    kv_dtype: opt.KVDtype = None,
    sliding_window: opt.SlidingWindow = None,
    context_parallel: opt.ContextParallel = None,
    task: opt.Task = None,
    haystack: opt.Haystack = None,
    lengths: opt.Lengths = None,
    depths: opt.Depths = None,
    trials: opt.Trials = None,
    seed: opt.Seed = None,
    difficulty: opt.Difficulty = None,
    sets: opt.Sets = None,
    reference: opt.Reference = None,
    reuse: opt.Reuse = None,
    out: opt.Out = None,
    max_minutes: opt.MaxMinutes = None,
    max_cost: opt.MaxCost = None,
    max_tokens: opt.MaxTokens = None,
    batch: opt.Batch = None,
    shard: opt.Shard = None,
    cache: opt.Cache = None,
    plugin: opt.Plugin = None,
    fresh: Annotated[bool, typer.Option("--fresh/--resume", help="A new folder, or go on with the old one.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan only.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Hide needles, ask for them under each KV setting, and write heatmaps, KV memory and a report.

    Without arguments: SmolLM2-135M on this machine, bf16 against int8 and int4.
    The same command goes on where it was interrupted.
    """
    flags = opt.RunFlags(
        backend=backend,
        model=model,
        kv=kv,
        kv_dtype=kv_dtype,
        sliding_window=sliding_window,
        context_parallel=context_parallel,
        task=task,
        haystack=haystack,
        lengths=lengths,
        depths=depths,
        trials=trials,
        seed=seed,
        difficulty=difficulty,
        reference=reference,
        reuse=reuse,
        out=out,
        max_minutes=max_minutes,
        max_cost=max_cost,
        max_tokens=max_tokens,
        batch=batch,
        shard=shard,
        cache=cache,
        plugin=plugin,
    )
    asked = opt.config_from(config, flags, sets)
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
