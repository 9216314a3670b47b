"""Answers kept by content across runs: JSON in one SQLite file, so that opening a foreign one runs nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import TracebackType

from pydantic import TypeAdapter, ValidationError

from niah.errors import StoreError
from niah.types import Answer

FILE = "answers.sqlite"
# seconds that a writer waits for another process's write
_PATIENCE_S = 30.0
_TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL, stored_at TEXT NOT NULL)"


@cache
def _adapter() -> TypeAdapter[Answer]:
    return TypeAdapter(Answer)


class AnswerStore:
    """A folder's answers. Several processes may use it at a time.

    Raises:
        StoreError: the folder cannot be made, or the file is not such a store.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            reason = (err.strerror or str(err)).lower()
            raise StoreError(
                f"cannot make the answer cache {str(folder)!r}: {reason}. Choose another --cache."
            ) from err
        with self._storing():
            self._database = sqlite3.connect(self.path, timeout=_PATIENCE_S)
        with self._storing():
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(_TABLE)
            self._database.commit()

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as err:
            raise StoreError(
                f"the answer cache {str(self.path)!r} cannot be used: {err}. Remove it, or choose another --cache."
            ) from err

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, tb: TracebackType | None) -> None:
        self._database.close()

    def get(self, key: str) -> Answer | None:
        """The answer of a key; None when there is none that this version of niah can read."""
        with self._storing():
            row = self._database.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            return _adapter().validate_python(json.loads(row[0]))
        except (ValueError, ValidationError):
            return None  # written by another version: asked again and replaced

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer; it is on disk when this returns."""
        values = (key, json.dumps(asdict(answer)), datetime.now(UTC).isoformat(timespec="seconds"))
        with self._storing():
            self._database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", values)
            self._database.commit()
