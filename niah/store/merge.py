"""Merging shards of one run: each cell once, its newest answer first, and one manifest that names its parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niah.errors import ConfigError
from niah.store.folder import RunFolder
from niah.store.read import RunRecord, newest, read_rows

# what the manifest of a part says of itself alone
_OWN = ("shard", "command", "resumed_at", "stopped_by")
# as many as a run may be asked in: a folder that says more is no shard of one
_MOST_SHARDS = 10_000
_UNSETTLED = ("broken", "inconclusive", "passed")


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge came to.

    Attributes:
        added: rows that the merged run did not have.
        missing: shards, by number, that were not given and had not been merged before.
        notes: what differs between the shards.
    """

    added: int
    cells: int
    missing: tuple[int, ...]
    notes: tuple[str, ...]


def whole_of(shards: Sequence[RunRecord]) -> str:
    """The identity of the run that all of them are shards of.

    Raises:
        ConfigError: one is no shard, or they are shards of different runs.
    """
    found: dict[tuple[str, int], str] = {}
    for record in shards:
        shard = _shard(record)
        found.setdefault((shard["whole"], shard["count"]), str(record.path))
    if len(found) > 1:
        (_, first), (_, other) = list(found.items())[:2]
        raise ConfigError(
            f"{first!r} and {other!r} are shards of different runs: model, settings, grid, seed, backend options and "
            "the way of computing must be the same, and so must the number of shards."
        )
    return next(iter(found))[0]


def _shard(record: RunRecord) -> dict[str, Any]:
    shard = record.manifest.get("shard")
    if not isinstance(shard, Mapping):
        raise ConfigError(f"{str(record.path)!r} is no shard. `niah run --shard 1/4` makes one.")
    index, count, whole = shard.get("index"), shard.get("count"), shard.get("whole")
    is_sound = isinstance(index, int) and isinstance(count, int) and 1 <= index <= count <= _MOST_SHARDS
    if not is_sound or not isinstance(whole, str) or not re.fullmatch("[a-z0-9]+", whole):
        raise ConfigError(f"{str(record.path)!r}: what run.json says of its shard cannot be read. Run it again.")
    return {"index": index, "count": count, "whole": whole}


def merge_into(folder: RunFolder, shards: Sequence[RunRecord]) -> Merged:
    """Add the shards' rows to the run in ``folder``, which may hold some already, and write its manifest.

    Merging the same shards again adds nothing. A cell that several have keeps an answered row where there is one.
    """
    whole_of(shards)
    old = folder.manifest() if folder.file("run.json").is_file() else {}
    have = newest(read_rows(folder).rows)
    added = 0
    for record in shards:
        for row in record.rows:
            before = have.get(row.cell_id)
            if before is None or (before.outcome == "failed" and row.outcome != "failed"):
                folder.append(row)
                have[row.cell_id] = row
                added += 1
    parts = {str(part["shard"]["index"]): part for part in old.get("merged_from") or ()}
    parts |= {str(_shard(record)["index"]): _part(record) for record in shards}
    count = _shard(shards[0])["count"]
    missing = tuple(number for number in range(1, count + 1) if str(number) not in parts)
    manifest, notes = _manifest(shards, list(parts.values()), old)
    is_whole = not missing and all(part["status"] == "finished" for part in parts.values())
    manifest["status"] = "finished" if is_whole else "interrupted"
    folder.write_manifest(manifest)
    return Merged(added, len(have), missing, tuple(notes))


def _part(record: RunRecord) -> dict[str, Any]:
    """What the merged manifest keeps of a shard."""
    manifest = record.manifest
    kept = ("command", "status", "started_at", "finished_at", "hardware", "versions", "spent", "plan")
    return {"run": record.path.name, "shard": _shard(record), **{name: manifest.get(name) for name in kept}}


def _manifest(
    shards: Sequence[RunRecord], parts: Sequence[Mapping[str, Any]], old: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    first = {name: value for name, value in shards[0].manifest.items() if name not in _OWN}
    asked = dict(first.get("asked") or {})
    asked |= {"shard": None, "config": {**(asked.get("config") or {}), "shard": None}}
    notes: list[str] = []
    settings = {kv: _setting(kv, shards, old, notes) for kv in first.get("settings") or {}}
    notes += [
        f"the shards have different {name}; merged_from in run.json keeps each"
        for name in ("hardware", "versions")
        if any(part[name] != parts[0][name] for part in parts)
    ]
    questions = dict(old.get("questions") or {})
    for record in shards:
        questions |= record.manifest.get("questions") or {}
    merged = {
        **first,
        "asked": asked,
        "command": "niah merge",
        "settings": settings,
        "questions": questions,
        "plan": _sums([part.get("plan") for part in parts]),
        "spent": _sums([part.get("spent") for part in parts]),
        "started_at": min(str(part["started_at"]) for part in parts),
        "finished_at": max(str(part["finished_at"]) for part in parts),
        "merged_from": sorted(parts, key=lambda part: int(part["shard"]["index"])),
    }
    return merged, notes


def _setting(kv: str, shards: Sequence[RunRecord], old: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """One setting: what the shards agree on, and the worst of their canaries."""
    entries = [dict(record.setting(kv)) for record in shards]
    before = (old.get("settings") or {}).get(kv)
    entries += [dict(before)] if before else []
    states = [str((entry.get("canary") or {}).get("state", "")) for entry in entries]
    worst = min(range(len(entries)), key=lambda i: _UNSETTLED.index(states[i]) if states[i] in _UNSETTLED else 9)
    if len({state for state in states if state}) > 1:
        notes.append(f"{kv}: its canary was {', '.join(sorted(set(filter(None, states))))} in different shards")
    broken = any(entry.get("broken") for entry in entries)
    return {**entries[0], "canary": entries[worst].get("canary"), "broken": broken}


def _sums(parts: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Numbers added up name by name; None where a part has none, since that is not nothing."""
    names = dict.fromkeys(name for part in parts for name in part or {})
    columns = {name: [(part or {}).get(name) for part in parts] for name in names}
    return {name: None if None in column else sum(column) for name, column in columns.items()}
