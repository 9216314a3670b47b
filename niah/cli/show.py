"""``niah show``: a run's heatmaps and figures in the terminal."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from niah.cli.options import Json
from niah.cli.say import say
from niah.redact import printable


def show(
    run: Annotated[Path, typer.Argument(help="Run folder, or a folder of runs (the newest is taken).")] = Path(
        "results"
    ),
    kv: Annotated[str | None, typer.Option("--kv", help="Only this setting.")] = None,
    palette: Annotated[str, typer.Option("--palette", help="cividis or classic.")] = "cividis",
    as_json: Json = False,
) -> None:
    """Heatmap of each KV setting with n and interval, a table of settings, failures by kind."""
    from niah.api import load
    from niah.errors import ConfigError, near
    from niah.report.data.grid import record_grid
    from niah.report.data.paging import paging_waste
    from niah.report.data.summary import failure_kinds, mismatches, summaries, summary_sentences

    record = load(run)
    names = record.kvs()
    if kv is not None and kv not in names:
        raise ConfigError(f"this run has no KV setting {kv!r}.{near(kv, names)}")
    if palette not in ("cividis", "classic"):
        raise ConfigError(f"no palette named {palette!r}; use cividis or classic.")
    wanted = [kv] if kv else names
    grids = {name: record_grid(record, name) for name in wanted}
    if as_json:
        typer.echo(json.dumps(_document(record, grids)))
        return
    from rich.console import Console

    from niah.report.text.tables import summary_table, terminal_heatmap

    console = Console(highlight=False)
    color = console.is_terminal and not os.environ.get("NO_COLOR")
    width = console.width if console.is_terminal else 120
    say(str(record.path))
    for sentence in summary_sentences(record):
        say(printable(sentence))  # a setting's name may hold a line break
    for name in wanted:
        say("")
        chosen: Any = palette
        typer.echo(terminal_heatmap(grids[name], color=color, width=width, palette=chosen), color=color)
    say("")
    if not console.is_terminal:
        console = Console(highlight=False, width=120)
    console.print(summary_table([s for s in summaries(record) if s.kv in wanted]))
    for waste in paging_waste(record):
        say(printable(waste.sentence()))
    for line in cost_lines(record, wanted):
        say(printable(line))
    for failure in failure_kinds(record.rows):
        say(printable(f"{failure.kv}: {failure.cells} × {failure.kind}: {failure.message}"))
    for mismatch in mismatches(record):
        say(
            f"{printable(mismatch.kv)}: {mismatch.cells} cells measured other bytes than the formula, for instance "
            f"{mismatch.logical_bytes:,} against {mismatch.formula_bytes:,} at length {mismatch.length}"
        )
    if record.bad_lines:
        say(f"rows.jsonl: {len(record.bad_lines)} lines cannot be read and are left out", err=True)


def cost_lines(record: Any, wanted: list[str]) -> list[str]:
    """A line per setting and length that has a cost."""
    from niah.grid import length_label
    from niah.report.data.cost import dollars, length_costs

    lines = []
    for entry in length_costs(record):
        if entry.kv not in wanted:
            continue
        more = f", {entry.unknown} cells of unknown cost" if entry.unknown else ""
        more += f", {entry.cached} from the cache" if entry.cached else ""
        each = f"{dollars(entry.per_cell_usd)} a cell"
        lines.append(f"{entry.kv} at {length_label(entry.length)}: {dollars(entry.cost_usd)}, {each}{more}")
    return lines


def _document(record: Any, grids: dict[str, Any]) -> dict[str, Any]:
    from niah.api import setting_json
    from niah.report.data.cost import length_costs
    from niah.report.data.paging import paging_waste
    from niah.report.data.summary import summaries

    cells = [
        {
            "kv": name,
            "length": length,
            "depth": depth,
            "hits": cell.hits,
            "answered": cell.answered,
            "failed": cell.failed,
            "truncated": cell.truncated,
            "ci": [cell.interval.low, cell.interval.high],
            "logprob": cell.mean_logprob,
        }
        for name, grid in grids.items()
        for (length, depth), cell in sorted(grid.cells.items())
    ]
    costs = [asdict(entry) for entry in length_costs(record) if entry.kv in grids]
    settings = [setting_json(s) for s in summaries(record) if s.kv in grids]
    return {
        "run": str(record.path),
        "status": record.manifest.get("status"),
        "settings": settings,
        "paging": [waste.to_json() for waste in paging_waste(record)],
        "cells": cells,
        "costs": costs,
    }
