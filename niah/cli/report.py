"""``niah report``: one self-contained HTML file from one or more runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from niah.cli.options import Json, Plugin, TrustRun
from niah.cli.say import say


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Default: report.html in the first run.")
    ] = None,
    palette: Annotated[
        str, typer.Option("--palette", help="cividis, or classic: the red, yellow and green of 2023.")
    ] = "cividis",
    plugin: Plugin = None,  # noqa: ARG001 (loaded by the option)
    trust_run: TrustRun = False,
    as_json: Json = False,
) -> None:
    """Write the report anew, and the run's figures with it when it is a single run.

    Of several runs, the first is what the others are compared with; their report needs a file of its own.
    """
    from niah.api import load, write_outputs
    from niah.errors import ConfigError
    from niah.report.data.surroundings import surroundings_of
    from niah.report.page.html import write_report
    from niah.report.palette import palette_named

    colors = palette_named(palette)
    if len(runs) > 1 and output is None:
        raise ConfigError(
            "the report of several runs belongs to none of them. Name its file with -o, as in -o report.html."
        )
    records = [load(path) for path in runs]
    target = output or records[0].path / "report.html"
    if output is None:
        for note in write_outputs(records[0], palette=colors, trust=trust_run):
            say(note, err=True)
    else:
        around = [surroundings_of(record, trust=trust_run) for record in records]
        write_report(list(records), target, colors, around)
    if as_json:
        typer.echo(json.dumps({"report": str(target)}))
    else:
        say(str(target))
