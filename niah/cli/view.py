"""``niah view``: the results folder in a browser, on this machine only."""

from __future__ import annotations

import importlib.util
import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from niah.cli.options import Json
from niah.cli.say import say

_PACKAGES = ("starlette", "uvicorn", "sse_starlette")


def view(
    results: Annotated[Path, typer.Argument(help="Folder of runs, or one run folder.")] = Path("results"),
    host: Annotated[str, typer.Option("--host", help="Address to listen on; another than this needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", "-p", help="0 takes a free one.")] = 8765,
    token: Annotated[
        bool, typer.Option("--token", help="Ask for a token, made anew; NIAH_VIEW_TOKEN sets one that stays.")
    ] = False,
    palette: Annotated[str, typer.Option("--palette", help="cividis or classic.")] = "cividis",
    as_json: Json = False,
) -> None:
    """List of runs, live progress of one that is going on, reports, and two runs compared. It writes nothing.

    Ctrl-C ends it.
    """
    from niah.errors import MissingDependency
    from niah.report.palette import palette_named
    from niah.view.serve import bind, choose_token, serve

    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingDependency(package, "view", "niah view")
    from niah.view.runs import Results

    colors = palette_named(palette)
    Results.open(results)
    bound = bind(host, port, choose_token(host, make=token))

    def ready(url: str) -> None:
        typer.echo(json.dumps({"view": url}) if as_json else url)
        say(f"showing {results}; Ctrl-C ends it", err=True)

    # the server ends what is open on Ctrl-C, then hands the signal on
    with bound.listener, suppress(KeyboardInterrupt):
        serve(results, bound, colors, ready)
    say("niah view has ended", err=True)
