"""What a command says: text that comes from models, servers and files is shown, and steers no terminal."""

from __future__ import annotations

import sys

import typer

from niah.redact import printable


def say(text: str, *, err: bool = False) -> None:
    """Print lines of text; whatever is no printable character in them is shown escaped."""
    typer.echo(printable(text, lines=True), err=err)


def replace_unwritable() -> None:
    """Let characters that the output's encoding lacks (cp1252, ASCII) be replaced instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
        except (AttributeError, ValueError, OSError):
            continue  # no stream of text of its own, as under a test or a notebook
