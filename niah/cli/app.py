"""The command ``niah``: one file a command; every error becomes one sentence and an exit code."""

from __future__ import annotations

import logging
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Annotated

import typer

from niah._version import __version__
from niah.cli import (
    cell,
    compare,
    doctor,
    export,
    init,
    listing,
    memory,
    merge,
    plan,
    report,
    rescore,
    run,
    schema,
    show,
    view,
)
from niah.cli.options import with_defaults
from niah.cli.say import replace_unwritable, say
from niah.errors import NiahError
from niah.redact import RedactingFormatter, redact

app = typer.Typer(
    name="niah",
    help="Needle-in-a-haystack benchmark for KV caches: what a KV setting costs in retrieval, and what it saves.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("show")(show.show)
app.command("cell")(cell.cell)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("view")(view.view)
app.command("rescore")(rescore.rescore)
app.command("merge")(merge.merge)
app.command("export")(export.export)
app.command("memory")(memory.memory)
app.command("list")(listing.list_)
app.command("doctor")(doctor.doctor)
app.command("init")(init.init)
app.command("schema")(schema.schema)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")] = False,
) -> None:
    """Options that every command takes."""


def _show_trace(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What Python prints of an error that nobody caught, without keys."""
    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, trace))))


def main() -> None:
    """Run the command line; a ``NiahError`` is printed as one sentence, with its trace only under ``--debug``."""
    replace_unwritable()
    debug = "--debug" in sys.argv
    # --debug works wherever it stands
    arguments = with_defaults([a for a in sys.argv[1:] if a != "--debug"])
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter("%(message)s"))
    logging.basicConfig(level=logging.DEBUG if debug else logging.ERROR, handlers=[handler])
    sys.excepthook = _show_trace
    for noisy in ("httpx", "httpx2", "httpcore2", "urllib3", "filelock", "matplotlib", "PIL", "asyncio", "fsspec"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # a run folder is data, and its .env somebody else's
    if Path(".env").is_file() and not Path("run.json").is_file():
        from dotenv import load_dotenv

        load_dotenv(Path(".env"))  # what is set already wins
    try:
        app(args=arguments, prog_name="niah")
    except NiahError as err:
        if debug:
            raise
        say(redact(f"niah: {err}"), err=True)
        sys.exit(err.exit_code)
    except KeyboardInterrupt:
        typer.echo("niah: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)  # the reader (head, less) has seen enough
