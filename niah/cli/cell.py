"""``niah cell``: one cell of a run; its prompt is built again and checked against the stored hash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from niah.cli.options import Json

if TYPE_CHECKING:
    from niah.api import Run
    from niah.store.schema import Row
    from niah.types import Prompt


def cell(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    cell_id: Annotated[str, typer.Argument(help="Cell id; its first letters are enough.", metavar="ID")],
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the whole prompt.")] = False,
    as_json: Json = False,
) -> None:
    """Needle in its surroundings, question, answer, and why it scored so."""
    from niah.api import load

    record = load(run)
    row = find_row(record, cell_id)
    built, tokenizer = rebuild(record, row)
    text = tokenizer.decode(built.ids())
    matches = built.sha256 == row.prompt_sha256
    if as_json:
        typer.echo(json.dumps(_document(row, built, text, matches, whole=prompt)))
    elif prompt:
        typer.echo(text)
    else:
        _print(row, built, tokenizer, matches)
    if not matches:
        typer.echo("the prompt built now has another hash than the one that was sent", err=True)
        raise typer.Exit(6)


def find_row(record: Run, cell_id: str) -> Row:
    """The row whose id starts so.

    Raises:
        ConfigError: none, or more than one.
    """
    from niah.errors import ConfigError

    found = [row for row in record.rows if row.cell_id.startswith(cell_id)]
    if len(found) != 1:
        reason = "no cell" if not found else f"{len(found)} cells"
        raise ConfigError(f"{reason} of {str(record.path)!r} has an id that starts with {cell_id!r}: see rows.jsonl.")
    return found[0]


def rebuild(record: Run, row: Row) -> tuple[Prompt, Any]:
    """Build the row's prompt again from the manifest; returns it with the tokenizer."""
    from niah.errors import ConfigError
    from niah.report.surroundings import plan_again

    plan = plan_again(record.manifest, record.path)
    for group in plan.groups:
        if group.length != row.length or group.trial != row.trial or row.depth not in group.layout.asked:
            continue
        built = plan.workshop.prompts(group)[list(group.layout.asked).index(row.depth)]
        return built, plan.info.tokenizer
    raise ConfigError(f"the cell {row.cell_id} is not in the grid that the manifest describes.")


def _document(row: Row, built: Prompt, text: str, matches: bool, *, whole: bool) -> dict[str, Any]:
    from dataclasses import asdict

    document: dict[str, Any] = {
        "cell_id": row.cell_id,
        "prompt_sha256": row.prompt_sha256,
        "matches": matches,
        "placements": [asdict(p) for p in built.placements],
        "question": built.case.question,
        "row": row.to_json(),
    }
    return document | ({"prompt": text} if whole else {})


def _print(row: Row, built: Prompt, tokenizer: Any, matches: bool) -> None:
    from niah.report.surroundings import cut_out, needle_place

    placed, around = needle_place(built), cut_out(built, tokenizer, matches)
    lines = {
        "cell": f"{row.cell_id}  {row.kv} · length {row.length:,} · depth {row.depth:g} (real {placed.depth_real:.4f})",
        "needle": f"…{around.before} ▶{around.needle}◀ {around.after}…",
        "question": built.case.question,
        "expected": ", ".join(row.expected),
        "answer": f"{built.case.answer_prefix.strip()} ▶{row.answer}◀",
        "outcome": f"{row.outcome}: {row.why or row.error}",
        "tokens": f"{row.prompt_tokens:,} prompt + {row.answer_budget} for the answer = {row.length:,}"
        if row.prompt_tokens
        else "",
        "log p": f"{row.logprob:.3f} of the expected answer" if row.logprob is not None else "not given",
        "prompt": f"sha256 {row.prompt_sha256[:16]}… {'matches' if matches else 'DOES NOT MATCH'}",
    }
    for name, value in lines.items():
        typer.echo(f"{name:<9} {value}")
