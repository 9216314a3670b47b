"""Rewriting rows in place: the file is replaced in one step, so a reader sees the old rows or the new ones."""

from __future__ import annotations

import json
from collections.abc import Callable

from niah.errors import StoreError
from niah.store.folder import ROWS, RunFolder, write_atomic
from niah.store.read import parse_row
from niah.store.schema import Row


def rewrite_rows(folder: RunFolder, change: Callable[[Row], Row]) -> int:
    """Put every row through ``change``; returns how many it changed.

    Lines that are no rows stay as they are: they may be what a later look can repair. A torn last line stays too.

    Raises:
        StoreError: a row was written by a newer niah, the file cannot be written, or another process writes this run.
    """
    folder.lock()
    path = folder.file(ROWS)
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as err:
        raise StoreError(f"{str(path)!r} cannot be read: {err.strerror}. Run the command again first.") from err
    changed = 0
    for index, line in enumerate(lines):
        try:
            row = parse_row(line)
        except ValueError:
            continue
        new = change(row)
        if new != row:
            lines[index] = json.dumps(new.to_json(), allow_nan=False, separators=(",", ":")).encode() + b"\n"
            changed += 1
    if changed:
        write_atomic(path, b"".join(lines))
    return changed
