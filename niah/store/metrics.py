"""Readings of a server or card taken during a run: lines as they come, a parquet file at the end."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from niah.errors import MissingDependency, StoreError
from niah.store.folder import RunFolder, write_atomic
from niah.store.strict import strict_json

LINES = "metrics.jsonl"
PARQUET = "metrics.parquet"


def append_sample(folder: RunFolder, kv: str, values: Mapping[str, float]) -> None:
    """Add one reading. They are many and not the truth of a run, so they are not synced to disk one by one.

    Raises:
        StoreError: the file cannot be written.
    """
    line = json.dumps({"at": datetime.now(UTC).isoformat(), "kv": kv, **values})
    try:
        with folder.file(LINES).open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError as err:
        raise StoreError(f"{LINES} of {str(folder.path)!r} cannot be written: {err.strerror or err}.") from err


def read_samples(path: Path) -> list[dict[str, object]]:
    """Readings of a run folder in order: numbers, with ``at`` and ``kv`` as text; what is neither is left out."""
    file = RunFolder(path).reading(LINES)
    if not file.is_file():
        return []
    found = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = strict_json(line)
        except ValueError:
            continue  # torn by a kill: readings are samples, the next one follows
        if isinstance(entry, dict):
            found.append({name: value for name, value in entry.items() if _is_reading(name, value)})
    return found


def _is_reading(name: str, value: object) -> bool:
    return isinstance(value, str) if name in ("at", "kv") else type(value) in (int, float)


def write_metrics(path: Path) -> Path | None:
    """Write ``metrics.parquet`` beside the readings; None when there are none.

    Raises:
        MissingDependency: pyarrow is not installed.
    """
    samples = read_samples(path)
    if not samples:
        return None
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as err:
        raise MissingDependency("pyarrow", "report", "Writing parquet") from err
    names = list(dict.fromkeys(name for sample in samples for name in sample))
    columns = {name: [sample.get(name) for sample in samples] for name in names}
    table = pa.table({name: pa.array(column, type=_kind(pa, name, column)) for name, column in columns.items()})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    target = RunFolder(path).file(PARQUET)
    write_atomic(target, buffer.getvalue())
    return target


def _kind(pa: Any, name: str, column: Sequence[object]) -> Any:
    """A column's type: in one reading a counter may be a whole number, and in the next one not."""
    if name in ("at", "kv"):
        return pa.string()
    return pa.int64() if all(value is None or isinstance(value, int) for value in column) else pa.float64()


def load_samples(path: Path) -> list[dict[str, object]]:
    """Readings of a run folder in order, from the lines or, where only that was kept, from the parquet file."""
    samples = read_samples(path)
    file = RunFolder(path).reading(PARQUET)
    if samples or not file.is_file():
        return samples
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as err:
        raise MissingDependency("pyarrow", "report", "Reading parquet") from err
    try:
        rows: list[dict[str, object]] = pq.read_table(file).to_pylist()
    except (OSError, pa.ArrowInvalid) as err:
        raise StoreError(f"{str(file)!r} cannot be read: {err}. Remove it, or restore it.") from err
    # a column that this reading did not have is a hole in the table
    return [{name: value for name, value in row.items() if value is not None} for row in rows]
