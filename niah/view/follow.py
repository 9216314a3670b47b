"""Follows a run while it is being written: each new row is read once, and added up into what the page draws."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from niah.errors import StoreError
from niah.store.folder import ROWS, RunFolder
from niah.store.read import newest, parse_row
from niah.store.schema import Row
from niah.view.runs import entry_of

_RATE_ROWS = 200
_LAST_ROWS = 8
_SHOWN_CHARS = 120


class Follower:
    """Rows of one run so far. ``read`` takes what has been added since the last time."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._offset = 0
        self._rows: dict[str, Row] = {}
        self._last: deque[Row] = deque(maxlen=_RATE_ROWS)

    def read(self) -> None:
        """Read whole lines that are new; a file that became shorter is read anew.

        Raises:
            StoreError: a row was written by a newer niah.
        """
        path = self._folder.reading(ROWS)
        if not path.is_file():
            return
        with path.open("rb") as file:
            if path.stat().st_size < self._offset:
                self._offset, self._rows = 0, {}
                self._last.clear()
            file.seek(self._offset)
            block = file.read()
        whole = block[: block.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            row = _row(line)
            if row is not None:
                self._rows[row.cell_id] = newest(filter(None, [self._rows.get(row.cell_id), row]))[row.cell_id]
                self._last.append(row)

    def snapshot(self) -> dict[str, Any]:
        """What the page draws: counts, the squares of each setting, the last answers, and how long it may take yet."""
        entry = entry_of(self._folder)
        counts = {"answered": 0, "right": 0, "failed": 0, "truncated": 0, "refused": 0}
        settings: dict[str, dict[str, Any]] = {kv: {"kv": kv, **counts, "squares": {}} for kv in entry.kvs}
        for row in self._rows.values():
            setting = settings.setdefault(row.kv, {"kv": row.kv, **counts, "squares": {}})
            square = setting["squares"].setdefault(f"{row.length},{row.depth:g}", [0, 0, 0])
            setting[row.outcome] += 1
            setting["right"] += row.correct is True
            square[0] += row.correct is True
            square[1] += row.outcome == "answered"
            square[2] += row.outcome != "answered"
        broken = self._broken()
        per_minute = self._per_minute()
        left = max(0, entry.cells - len(self._rows))
        return {
            "name": entry.name,
            "status": entry.status,
            "silent_s": round(entry.silent_s) if entry.silent else 0,
            "cells": entry.cells,
            "done": len(self._rows),
            "per_minute": per_minute,
            "left_s": 60 * left / per_minute if per_minute else None,
            "settings": [{**setting, "broken": kv in broken} for kv, setting in settings.items()],
            "last": [_brief(row) for row in list(self._last)[-_LAST_ROWS:][::-1]],
        }

    def _broken(self) -> set[str]:
        try:
            settings = self._folder.manifest().get("settings")
        except StoreError:
            return set()
        if not isinstance(settings, Mapping):
            return set()
        return {kv for kv, entry in settings.items() if isinstance(entry, Mapping) and entry.get("broken") is True}

    def _per_minute(self) -> float | None:
        """Rows a minute over the last ones, by their own times."""
        moments = [moment for row in self._last if (moment := _moment(row)) is not None]
        span = max(moments) - min(moments) if moments else 0.0
        return 60 * (len(moments) - 1) / span if span > 0 else None


def _row(line: bytes) -> Row | None:
    try:
        return parse_row(line)
    except ValueError:
        return None  # a damaged line is counted and named by the report


def _moment(row: Row) -> float | None:
    try:
        return datetime.fromisoformat(row.finished_at).timestamp()
    except (ValueError, OverflowError):
        return None


def _brief(row: Row) -> dict[str, Any]:
    verdict = row.outcome if row.outcome != "answered" else "right" if row.correct else "wrong"
    text = row.answer if row.outcome == "answered" else row.error or ""
    return {
        "cell": row.cell_id,
        "kv": row.kv,
        "length": row.length,
        "depth": row.depth,
        "verdict": verdict,
        "expected": " | ".join(row.expected)[:_SHOWN_CHARS],
        "answer": text[:_SHOWN_CHARS],
    }
