"""``niah cell``: one cell of a run; its prompt is built again and checked against the stored hash."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from niah.cli.options import Json, Plugin, TrustRun
from niah.cli.say import say
from niah.redact import printable

if TYPE_CHECKING:
    from niah.api import Run
    from niah.report.data.surroundings import Surrounding
    from niah.store.schema import Row
    from niah.types import Prompt


def cell(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    cell_id: Annotated[str, typer.Argument(help="Cell id; its first letters are enough.", metavar="ID")],
    prompt: Annotated[bool, typer.Option("--prompt", help="Print the whole prompt.")] = False,
    plugin: Plugin = None,  # noqa: ARG001 (loaded by the option)
    trust_run: TrustRun = False,
    as_json: Json = False,
) -> None:
    """Needle in its surroundings, question, answer, and why it scored so."""
    from niah.api import load
    from niah.errors import NiahError, StoreError

    record = load(run)
    row = find_row(record, cell_id)
    built, why = None, ""
    try:
        built = rebuild(record, row, trust=trust_run)
    except StoreError:
        raise
    except NiahError as err:
        if prompt or trust_run:
            raise
        why = str(err)
    if as_json:
        typer.echo(json.dumps(_document(record, row, built, why, whole=prompt)))
    elif prompt and built is not None:
        say(built.text)
    else:
        _print(record, row, built)
    if built is None:
        say(f"niah: the prompt was not built again: {why}", err=True)
    elif not built.matches:
        say("the prompt built now has another hash than the one that was sent", err=True)
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


@dataclass(frozen=True, slots=True)
class Built:
    """A prompt built again. ``matches``: it has the hash of the one that was sent."""

    prompt: Prompt
    text: str
    around: Surrounding
    matches: bool


def rebuild(record: Run, row: Row, *, trust: bool = False) -> Built:
    """Build the row's prompt again from the manifest.

    Args:
        trust: do what the folder says for that; see ``niah.runner.reread``.
    """
    from niah.errors import ConfigError
    from niah.report.data.surroundings import cut_out
    from niah.runner.reread import plan_again

    plan = plan_again(record.manifest, record.path, {(row.length, row.trial)}, trust=trust)
    for group in plan.groups:
        if group.length != row.length or group.trial != row.trial or row.depth not in group.layout.asked:
            continue
        built = plan.builder.prompts(group)[list(group.layout.asked).index(row.depth)]
        matches = built.sha256 == row.prompt_sha256
        text = plan.info.tokenizer.decode(built.ids())
        return Built(built, text, cut_out(built, plan.info.tokenizer, matches), matches)
    raise ConfigError(f"the cell {row.cell_id} is not in the grid that the manifest describes.")


def _question(record: Run, row: Row) -> str:
    questions = record.manifest.get("questions")
    return str(questions.get(row.pair_id, "")) if isinstance(questions, dict) else ""


def _document(record: Run, row: Row, built: Built | None, why: str, *, whole: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "cell_id": row.cell_id,
        "prompt_sha256": row.prompt_sha256,
        "matches": None,
        "placements": [],
        "question": _question(record, row),
        "row": row.to_json(),
    }
    if built is None:
        return document | {"not_built": why}
    document |= {
        "matches": built.matches,
        "placements": [asdict(p) for p in built.prompt.placements],
        "question": built.prompt.case.question,
    }
    return document | ({"prompt": built.text} if whole else {})


def _time(row: Row) -> str:
    """Shares and wholes by their names: questions of one context are answered together."""
    timing = row.timing
    if not timing.total_s:
        return "not known"
    prefill = f", {timing.prefill_s:.3f} s of it prefill" if timing.prefill_s else ""
    first = (
        f"; first token {timing.first_token_s:.3f} s after the whole context was begun" if timing.first_token_s else ""
    )
    return f"{timing.total_s:.3f} s, this cell's share of its context{prefill}{first}"


def _print(record: Run, row: Row, built: Built | None) -> None:
    from niah.report.data.surroundings import needle_place, read_surroundings

    if built is not None:
        around: Surrounding | None = built.around
        real: float | None = needle_place(built.prompt).depth_real
        hashed = f"{row.prompt_sha256[:16]}… {'matches' if built.matches else 'DOES NOT MATCH'}"
    else:
        kept = read_surroundings(record.path)
        around = kept.pairs.get(row.pair_id) if kept is not None else None
        real, hashed = row.depth_real, f"{row.prompt_sha256[:16]}… not built again"
    place = "" if real is None else f" (real {real:.4f})"
    lead = around.lead if around is not None else ""
    lines = {
        "cell": f"{row.cell_id}  {row.kv} · length {row.length:,} · depth {row.depth:g}{place}",
        "needle": "not kept" if around is None else f"…{around.before} ▶{around.needle}◀ {around.after}…",
        "question": around.question if around is not None else _question(record, row),
        "expected": ", ".join(row.expected),
        "answer": f"{lead} ▶{row.answer}◀",
        "outcome": f"{row.outcome}: {row.why or row.error}",
        "tokens": f"{row.prompt_tokens:,} prompt + {row.answer_budget} for the answer = {row.length:,}"
        if row.prompt_tokens
        else "",
        "log p": f"{row.logprob:z.3f} of the expected answer" if row.logprob is not None else "not given",
        "time": _time(row),
        "prompt": f"sha256 {hashed}",
    }
    for name, value in lines.items():
        say(f"{name:<9} {printable(value)}")
