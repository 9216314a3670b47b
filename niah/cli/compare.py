"""``niah compare``: is one KV setting, or one run, worse than another?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from niah.cli.options import Json
from niah.cli.say import say
from niah.redact import printable

if TYPE_CHECKING:
    from niah.api import RunComparison

_WORSE, _NOT_EQUIVALENT = "worse", "not-equivalent"


def compare(
    runs: Annotated[list[Path], typer.Argument(help="One run: its settings. More: each against the first.")],
    base: Annotated[
        str | None, typer.Option("--base", help="KV setting of the first run to compare with (default: its reference).")
    ] = None,
    kv: Annotated[str | None, typer.Option("--kv", help="Only these settings: int8,int4.")] = None,
    margin: Annotated[
        float, typer.Option("--margin", help="Largest difference that counts as none, as a share.")
    ] = 0.02,
    bar: Annotated[float, typer.Option("--bar", help="Accuracy that the effective length must hold.")] = 0.85,
    max_drop: Annotated[
        float | None, typer.Option("--max-drop", help="Exit 1 when accuracy fell by more than this beyond doubt.")
    ] = None,
    fail_on: Annotated[
        str | None, typer.Option("--fail-on", help="Exit 1 on a verdict: worse, or not-equivalent.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown for a pull request on stdout.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Figure of quality against KV bytes (.png, .svg or .pdf).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Paired by question: verdicts with intervals, by length and depth, quality against memory, and what else differed.

    Only cells that both sides answered count. Exit code 1 goes by the interval's edge, never by the point.
    """
    from niah.api import compare as compare_runs
    from niah.config import split_list

    _check_gates(max_drop, fail_on)
    kvs = split_list(kv) if kv is not None else None
    report = compare_runs(*runs, base=base, kvs=kvs, margin=margin, bar=bar)
    missed = _missed(report, max_drop, fail_on)
    code = 1 if missed else 3 if _not_judged(report, max_drop, fail_on) else 0
    if output is not None:
        from niah.report.figures.quality_memory import save_edge

        say(str(save_edge(report, output)), err=True)
    if markdown:
        say(report.markdown().rstrip("\n"))
    elif not as_json:
        _print(report)
    for line in missed or _not_judged(report, max_drop, fail_on):
        say(f"niah: {line}", err=True)
    if as_json:
        typer.echo(json.dumps(report.to_json(code)))
    raise typer.Exit(code)


def _check_gates(max_drop: float | None, fail_on: str | None) -> None:
    from niah.errors import ConfigError, near

    if max_drop is not None and not 0 <= max_drop < 1:
        raise ConfigError(f"--max-drop cannot be {max_drop:g}: give a share from 0 to below 1; 0.02 is 2 points.")
    if fail_on is not None and fail_on not in (_WORSE, _NOT_EQUIVALENT):
        raise ConfigError(f"--fail-on cannot be {fail_on!r}.{near(fail_on, [_WORSE, _NOT_EQUIVALENT])}")


def _missed(report: RunComparison, max_drop: float | None, fail_on: str | None) -> list[str]:
    """Thresholds that were missed, a sentence each."""
    from niah.report.text.comparison import sentence

    missed = []
    for item in report.comparisons:
        if max_drop is not None and item.drops_more_than(max_drop):
            missed.append(f"--max-drop {max_drop:g} is missed beyond doubt. {sentence(item)}")
        elif fail_on == _WORSE and item.verdict == "worse":
            missed.append(f"--fail-on worse. {sentence(item)}")
        elif fail_on == _NOT_EQUIVALENT and item.verdict not in ("equivalent", "better"):
            missed.append(f"--fail-on not-equivalent. {sentence(item)}")
    return missed


def _not_judged(report: RunComparison, max_drop: float | None, fail_on: str | None) -> list[str]:
    """Settings that a gate could not judge, because a canary failed or the texts are too few for what they seem to
    show: a gate must not pass them in silence."""
    from niah.stats.power import MIN_CONTEXTS

    if max_drop is None and fail_on is None:
        return []
    found = [
        f"{item.new} cannot be judged: a canary failed, see niah show." for item in report.comparisons if item.broken
    ]
    if max_drop is not None:
        found += [
            f"{item.new} cannot be judged: it seems to have fallen by more than --max-drop {max_drop:g}, but a verdict "
            f"needs {MIN_CONTEXTS} contexts (lengths × trials), and these are {item.contexts}; run more --trials."
            for item in report.comparisons
            if item.few_contexts and item.seems_to_drop_more_than(max_drop)
        ]
    return found


def _print(report: RunComparison) -> None:
    from rich.console import Console

    from niah.report.text import comparison as text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    for path in dict.fromkeys(str(side.record.path) for item in report.items for side in (item.base, item.new)):
        say(path)
    for total in report.comparisons:
        say(text.sentence(total))
    say("")
    console.print(text.verdict_table(report))
    for item in report.items:
        say(f"\n{printable(item.total.new)} against {printable(item.total.base)}")
        console.print(text.part_table(item))
        for line in text.shape_sentences(item):
            say(f" {line}")
    if any(point.kv_bytes_per_token is not None for point in report.points):
        say("\nquality against memory")
        console.print(text.edge_table(report))
    caveats = [f"{item.total.new}: {caveat}" for item in report.items for caveat in item.total.caveats]
    notes = [*caveats, *report.notes, *filter(None, [report.corrected])]
    if notes:
        say("\nread with care")
        for line in notes:
            say(f" {printable(line)}")
    for item in report.items:
        if item.differs:
            say(f"\nnot the same under {printable(item.total.new)}")
            for line in text.difference_lines(item):
                say(f" {line}")
