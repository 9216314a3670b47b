"""``niah report``: one self-contained HTML file from one or more runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from niah.cli.options import Json


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Default: report.html in the first run.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the report anew, and the run's figures with it when it is a single run."""
    from niah.api import load, write_outputs
    from niah.report.html import write_report

    records = [load(path) for path in runs]
    target = output or records[0].path / "report.html"
    if output is None and len(records) == 1:
        for note in write_outputs(records[0]):
            typer.echo(note, err=True)
    else:
        write_report(list(records), target)
    typer.echo(json.dumps({"report": str(target)}) if as_json else str(target))
