"""``niah export``: a run in other people's formats."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from niah.cli.say import say


def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    to: Annotated[str, typer.Option("--to", help="csv, jsonl, junit, markdown or parquet.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Default: standard output.")] = None,
) -> None:
    """Write the cells of a run for spreadsheets, data frames, a CI server or a text."""
    from niah.api import load
    from niah.errors import ConfigError
    from niah.report.text.export import export as exported
    from niah.store.folder import write_atomic

    data = exported(load(run), to)
    if output is not None:
        write_atomic(output, data)
        say(str(output))
        return
    if to == "parquet" and sys.stdout.isatty():
        raise ConfigError("parquet is no text for a terminal. Name a file with -o, as in -o rows.parquet.")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
