"""``niah memory --ladder``: the table of combined savings."""

from __future__ import annotations

import json
from collections.abc import Sequence

import typer

from niah.kv.config import KVConfig
from niah.kv.ladder import PAGING, Step, ladder
from niah.models.shape import ModelShape

_PLAIN_WIDTH = 160


def show_ladders(
    shape: ModelShape, steps: list[KVConfig], lengths: Sequence[int], batch: int, *, as_json: bool
) -> None:
    """One ladder a length, as tables or as one JSON document on the last line."""
    ladders = [(length, ladder(shape, length, steps, batch)) for length in lengths]
    if as_json:
        found = [{"length": length, "batch": batch, "steps": [s.to_json() for s in rungs]} for length, rungs in ladders]
        typer.echo(json.dumps({"model": shape.name, "ladders": found}, ensure_ascii=False))
        return
    for length, rungs in ladders:
        _print(shape, length, batch, rungs)


def _print(shape: ModelShape, length: int, batch: int, rungs: Sequence[Step]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from niah.grid import length_label
    from niah.kv.memory.totals import human_bytes, human_gb

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PLAIN_WIDTH)
    sequences = f", {batch} sequences" if batch > 1 else ""
    table = Table(
        title=f"KV cache of {shape.name} at {length_label(length)} tokens{sequences}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("step")
    for heading in ("decimal", "binary", "bytes", "of the start", "of the step before"):
        table.add_column(heading, justify="right")
    for step in rungs:
        total = step.total_bytes
        sizes = ["not possible", "", ""] if total is None else [human_gb(total), human_bytes(total), f"{total:,}"]
        table.add_row(step.name, *sizes, _percent(step.of_start), _percent(step.of_previous))
    console.print(table)
    for step in rungs:
        if step.note:
            # setting names hold parentheses and plus signs, which are not markup
            console.print(f"{step.name}: {step.note}", markup=False, soft_wrap=True)
    if any("blocks of" in step.note for step in rungs):
        console.print(PAGING, markup=False, soft_wrap=True)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}".replace("%", " %")
