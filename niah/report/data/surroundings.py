"""Needles in their surroundings: prompts built again, checked against those that were sent, and cut around the needle.

Whole prompts are never stored. What stands around each needle is built when a run ends or its report is made, and kept
in a small file beside the rows, so that a report can be made again on a machine without the model or the text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from niah.errors import CellError, ConfigError, NiahError, StoreError
from niah.runner.reread import plan_again
from niah.store.folder import RunFolder, write_atomic
from niah.store.read import RunRecord
from niah.store.schema import Row

if TYPE_CHECKING:
    from niah.prompts.tokens import Tokenizer
    from niah.runner.plan import Plan
    from niah.runner.prompt_builder import Group
    from niah.types import Placement, Prompt

# length, trial and depth of a cell
_Place: TypeAlias = tuple[int, int, float]

FILE = "surroundings.json"
SCHEMA = 1
AROUND_TOKENS = 60
AROUND_CHARS = 240
# a report is to be there in seconds: so much text is built again for it at most, wrong answers first
TOKEN_BUDGET = 4_000_000
MOST_PAIRS = 3_000
# text of a run that a report made later tokenises anew, at some hundred thousand tokens a second
REBUILD_TOKENS = 2_000_000


@dataclass(frozen=True, slots=True)
class Surrounding:
    """One needle where it was hidden, shared by all settings that were asked for it.

    Attributes:
        before, after: up to 240 characters of the text around the needle.
        lead: the start of the reply that the model was given; empty when it had to start itself.
        matches: whether the prompt built now has the hash of the one that was sent.
    """

    before: str
    needle: str
    after: str
    question: str
    lead: str
    matches: bool


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Surroundings by ``pair_id``; ``note`` says in a sentence what is missing and why."""

    pairs: Mapping[str, Surrounding]
    note: str = ""


def needle_place(prompt: Prompt) -> Placement:
    """Where the needle lies that the prompt asks for: one with the answer in it, nearest to the asked depth.

    Raises:
        ConfigError: the prompt holds no needle.
    """
    values = {needle.key: needle.value for needle in prompt.case.needles}

    def rank(place: Placement) -> tuple[bool, bool, float]:
        holds = values.get(place.key) in prompt.case.expected
        return (not holds, not place.asked, abs(place.depth - prompt.case.depth))

    if not prompt.placements:
        raise ConfigError("this prompt holds no needle.")
    return min(prompt.placements, key=rank)


def cut_out(prompt: Prompt, tokenizer: Tokenizer, matches: bool) -> Surrounding:
    """The needle of a prompt with the text around it."""
    place = needle_place(prompt)
    end = place.token_offset + place.token_count
    before = prompt.context[max(0, place.token_offset - AROUND_TOKENS) : place.token_offset]
    after = prompt.context[end : end + AROUND_TOKENS]
    return Surrounding(
        before=tokenizer.decode(list(before))[-AROUND_CHARS:],
        needle=tokenizer.decode(list(prompt.context[place.token_offset : end])),
        after=tokenizer.decode(list(after))[:AROUND_CHARS],
        question=prompt.case.question,
        lead=prompt.case.answer_prefix.strip(),
        matches=matches,
    )


def surroundings_of(record: RunRecord, plan: Plan | None = None, *, trust: bool = False) -> Surroundings:
    """What stands beside the rows, or else is built again; what cannot be built is told in the note.

    Args:
        plan: what the run came from, at its end: everything is then built anew.
        trust: do what the folder says; see ``niah.runner.reread``.
    """
    if plan is not None:
        try:
            return build_surroundings(record.rows, plan)
        except NiahError as err:
            return Surroundings({}, str(err).rstrip("."))
    found = read_surroundings(record.path)
    if found is not None:
        return found
    if not record.rows:
        return Surroundings({})
    text_tokens = len({row.trial for row in record.rows}) * max(row.length for row in record.rows)
    if text_tokens > REBUILD_TOKENS:
        size = f"{text_tokens / 1e6:.1f} million tokens"
        return Surroundings({}, f"this run has {size} of text, which a report does not build again")
    contexts = {(row.length, row.trial) for row in record.rows}
    try:
        return build_surroundings(record.rows, plan_again(record.manifest, record.path, contexts, trust=trust))
    except NiahError as err:
        return Surroundings({}, str(err).rstrip("."))


def build_surroundings(rows: Iterable[Row], plan: Plan, token_budget: int = TOKEN_BUDGET) -> Surroundings:
    """Build asked prompts again, contexts with wrong answers first, as far as the budget of tokens goes."""
    sent: dict[_Place, dict[str, Row]] = {}
    wrong: set[_Place] = set()
    for row in rows:
        sent.setdefault((row.length, row.trial, row.depth), {}).setdefault(row.pair_id, row)
        if row.correct is False:
            wrong.add((row.length, row.trial, row.depth))
    wanted = []
    for group in plan.groups:
        places = [(group.length, group.trial, depth) for depth in group.layout.asked]
        asked = [place for place in places if place in sent]
        if asked:
            wanted.append((not wrong.isdisjoint(asked), group, places))
    wanted.sort(key=lambda item: not item[0])
    pairs: dict[str, Surrounding] = {}
    spent = left_out = 0
    for _, group, places in wanted:
        spent += group.length
        if spent > token_budget or len(pairs) >= MOST_PAIRS:
            left_out += sum(place in sent for place in places)
            continue
        pairs |= _group_surroundings(plan, group, places, sent)
    note = f"left out for {left_out:,} cells of this large run, those with wrong answers last" if left_out else ""
    return Surroundings(pairs, note)


def _group_surroundings(
    plan: Plan, group: Group, places: list[_Place], sent: Mapping[_Place, Mapping[str, Row]]
) -> dict[str, Surrounding]:
    try:
        prompts = plan.builder.prompts(group)
    except (CellError, ConfigError):
        return {}  # its rows have failed for the same reason, and say so
    return {
        pair: cut_out(prompt, plan.info.tokenizer, row.prompt_sha256 in ("", prompt.sha256))
        for place, prompt in zip(places, prompts, strict=True)
        if prompt.placements
        for pair, row in sent.get(place, {}).items()
    }


def write_surroundings(path: Path, found: Surroundings) -> None:
    """Keep surroundings beside the rows of the run folder ``path``.

    Raises:
        StoreError: the file cannot be written.
    """
    data = {"schema": SCHEMA, "note": found.note, "pairs": {pair: asdict(item) for pair, item in found.pairs.items()}}
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    write_atomic(RunFolder(path).file(FILE), text.encode())


def read_surroundings(path: Path) -> Surroundings | None:
    """What stands beside the rows; None when there is nothing, or nothing that this version reads."""
    try:
        data = json.loads(RunFolder(path).reading(FILE).read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            return None
        pairs = {str(pair): _read(item) for pair, item in data["pairs"].items()}
        return Surroundings(pairs, str(data["note"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, StoreError):
        return None  # derived from the rows: whatever is wrong with it, it can be built again


def _read(item: Mapping[str, Any]) -> Surrounding:
    texts = {name: str(item[name]) for name in ("before", "needle", "after", "question", "lead")}
    return Surrounding(**texts, matches=item["matches"] is True)
