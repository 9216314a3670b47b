"""``niah merge``: shards of a run put together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from niah.cli.options import Json, Plugin
from niah.cli.say import say


def merge(
    shards: Annotated[list[Path], typer.Argument(help="Run folders that niah run --shard I/N made.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder of run folders. Default: where the first shard is.")
    ] = None,
    plugin: Plugin = None,  # noqa: ARG001 (loaded by the option)
    as_json: Json = False,
) -> None:
    """Put the shards of a run together, with their maps and report.

    The merged run is found by the same command without --shard, which then asks only what is missing.
    """
    from niah.api import merge_shards

    folder, found = merge_shards(shards, out)
    for note in found.notes:
        say(note, err=True)
    if found.missing:
        say(f"shards {', '.join(map(str, found.missing))} are missing: the run is not whole yet", err=True)
    say(f"{found.added:,} rows added, {found.cells:,} cells", err=True)
    document = {"run": str(folder), "added": found.added, "cells": found.cells, "missing": list(found.missing)}
    typer.echo(json.dumps(document) if as_json else str(folder))
