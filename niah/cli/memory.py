"""``niah memory``: what a KV setting costs in bytes, before anything is run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from niah.cli.options import Plugin
from niah.cli.say import say
from niah.engines.checkpoint.shape_by_name import resolve_shape
from niah.errors import ConfigError

if TYPE_CHECKING:
    from niah.kv.memory.table import MemoryRow
    from niah.models.shape import ModelShape

# a table in a pipe or log has no terminal that it must fit
_PLAIN_WIDTH = 160
DEFAULT = "reference,int8,int4"
LADDER = "int8,int8+paged,int4+paged"


def memory(
    model: Annotated[
        str, typer.Option("--model", "-m", help="Folder with a config.json, built-in name (llama-3.1-8b) or hub id.")
    ] = "smollm2",
    lengths: Annotated[
        str, typer.Option("--lengths", help="Tokens stored per sequence: 4k,32k,128k or 4k..128k (k = 1,024).")
    ] = "4k,32k,128k",
    kv: Annotated[
        str | None,
        typer.Option(
            "--kv", help="KV settings, comma separated, parts joined by +; reference is the model's own 16-bit cache."
        ),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Sequences held at the same time.")] = 1,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="Memory of the card, 80GiB or 24GB: says what fits with the weights.")
    ] = None,
    ladder: Annotated[
        bool,
        typer.Option("--ladder", help="Combined savings step by step, from MHA in 16 bit on; --kv names the steps."),
    ] = False,
    plugin: Plugin = None,  # noqa: ARG001 (loaded by the option)
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on the last line.")] = False,
) -> None:
    """Exact KV-cache bytes by setting and length, beside the textbook formula and the weights."""
    from niah.grid import parse_lengths
    from niah.kv.grammar import parse_kv
    from niah.kv.memory.table import memory_rows
    from niah.kv.memory.totals import parse_bytes

    gpu_bytes = None if gpu is None else parse_bytes(gpu)
    length_list = parse_lengths(lengths)
    shape = resolve_shape(model)
    settings = parse_kv(kv or (LADDER if ladder else DEFAULT), shape.native_dtype)
    if ladder:
        from niah.cli.ladder import show_ladders

        _refuse_gpu(gpu)
        show_ladders(shape, settings, length_list, batch, as_json=as_json)
        return
    rows = memory_rows(shape, settings, length_list, batch, gpu_bytes)
    _warn_context(shape, length_list)
    if as_json:
        typer.echo(json.dumps({"model": shape.name, "rows": [row.to_json() for row in rows]}, ensure_ascii=False))
        return
    _print_table(shape, rows, gpu)


def _refuse_gpu(gpu: str | None) -> None:
    if gpu is not None:
        raise ConfigError("--gpu and --ladder do not go together; ask what fits without --ladder.")


def _warn_context(shape: ModelShape, lengths: Sequence[int]) -> None:
    if shape.context_tokens is not None and max(lengths) > shape.context_tokens:
        say(
            f"note: {max(lengths):,} tokens is more than the {shape.context_tokens:,} that {shape.name} is made for; "
            "the bytes are right, the answers may not be.",
            err=True,
        )


def _print_table(shape: ModelShape, rows: Sequence[MemoryRow], gpu: str | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from niah.grid import length_label
    from niah.kv.memory.formula_text import naive_note
    from niah.kv.memory.totals import human_bytes

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PLAIN_WIDTH)
    batch = f", batch {rows[0].batch}" if rows[0].batch > 1 else ""
    weights = rows[0].weights_bytes
    table = Table(title=f"KV cache of {shape.name}{batch}", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("KV")
    for heading in ("length", "KV cache", "bytes", "naive MHA", "vs 16 bit", "weights"):
        table.add_column(heading, justify="right")
    if gpu is not None:
        table.add_column(f"fits {gpu}")
    for row in rows:
        cells = [
            row.kv,
            length_label(row.length),
            "refused" if row.allocated_bytes is None else human_bytes(row.allocated_bytes),
            "–" if row.allocated_bytes is None else f"{row.allocated_bytes:,}",
            human_bytes(row.naive_mha_bytes),
            _ratio(row),
            "unknown" if weights is None else human_bytes(weights),
        ]
        table.add_row(*cells, *([] if gpu is None else [_yes_no(row.fits)]))
    console.print(table)
    console.print(naive_note(shape, rows[-1].length), soft_wrap=True)
    for name, text in {row.kv: row.formula or f"refused: {row.refused}" for row in rows}.items():
        # formulas hold square brackets, which are not markup
        console.print(f"{name}: {text}", markup=False, soft_wrap=True)


def _ratio(row: MemoryRow) -> str:
    held, reference = row.allocated_bytes, row.reference_bytes
    if held is None:
        return "–"
    if not held or held == reference:
        return "1 ×"
    if held > reference:
        return f"{held / reference:.2f} × larger" if reference else "larger"
    return f"{reference / held:.2f} × smaller"


def _yes_no(fits: bool | None) -> str:
    return "unknown" if fits is None else "yes" if fits else "no"
