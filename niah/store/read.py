"""Read a run back: rows as far as they are whole, each cell once, and the manifest beside them."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from niah.errors import MissingDependency
from niah.store.folder import ROWS, RunFolder, open_run, write_atomic
from niah.store.schema import Row
from niah.types import JSON, KVUsage, Timing

if TYPE_CHECKING:
    import pandas as pd

PARQUET = "rows.parquet"
_NESTED = {"kv_memory": KVUsage, "timing": Timing}
_INTEGERS = {
    "prompt_tokens",
    "answer_budget",
    "engine_prompt_tokens",
    "output_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "count_difference",
    "requests",
}


@dataclass(frozen=True, slots=True)
class RowsRead:
    """What ``rows.jsonl`` gave.

    Attributes:
        rows: whole rows in the order they were written, repeated cells included.
        torn: the last line had no end, as after a kill, and was left out.
        bad_lines: numbers (from 1) of lines that are no rows and were left out.
    """

    rows: list[Row]
    torn: bool
    bad_lines: list[int]


def read_rows(folder: RunFolder) -> RowsRead:
    """All whole rows of a run; none when the run has not written any.

    Raises:
        StoreError: a row was written by a newer niah.
    """
    path = folder.path / ROWS
    rows: list[Row] = []
    bad_lines: list[int] = []
    if not path.is_file():
        return RowsRead(rows, torn=False, bad_lines=bad_lines)
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return RowsRead(rows, torn=True, bad_lines=bad_lines)
            if not line.strip():
                continue
            try:
                rows.append(_parse(line))
            except (ValueError, RecursionError):
                bad_lines.append(number)
    return RowsRead(rows, torn=False, bad_lines=bad_lines)


def newest(rows: Iterable[Row]) -> dict[str, Row]:
    """One row a cell, by ``cell_id``: the newest answered one, else the newest. Later rows are newer."""
    chosen: dict[str, Row] = {}
    for row in rows:
        before = chosen.get(row.cell_id)
        # an answer is not lost to a later attempt that failed
        if before is None or row.outcome == "answered" or before.outcome != "answered":
            chosen[row.cell_id] = row
    return chosen


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it is read: its manifest and the one row that counts for each cell.

    Attributes:
        rows: each cell once, as ``newest`` chooses.
        torn, bad_lines: what was left out of ``rows.jsonl``; see ``RowsRead``.
    """

    path: Path
    manifest: Mapping[str, JSON]
    rows: tuple[Row, ...]
    torn: bool = False
    bad_lines: tuple[int, ...] = ()

    @staticmethod
    def load(path: Path) -> RunRecord:
        """The run at ``path``, or the newest run in that folder.

        Raises:
            StoreError: there is no run, or it cannot be read.
        """
        folder = open_run(path)
        read = read_rows(folder)
        rows = tuple(newest(read.rows).values())
        return RunRecord(folder.path, folder.manifest(), rows, read.torn, tuple(read.bad_lines))

    def kvs(self) -> list[str]:
        """KV settings in the manifest's order, then any that only rows have."""
        settings = self.manifest.get("settings")
        listed = list(settings) if isinstance(settings, Mapping) else []
        return list(dict.fromkeys([*listed, *(row.kv for row in self.rows)]))

    def setting(self, kv: str) -> Mapping[str, JSON]:
        """What the manifest says of one KV setting; empty when it says nothing."""
        settings = self.manifest.get("settings")
        entry = settings.get(kv) if isinstance(settings, Mapping) else None
        return entry if isinstance(entry, Mapping) else {}

    def broken(self, kv: str) -> bool:
        """Whether the setting failed its canary, so that its figures are not to be interpreted."""
        return self.setting(kv).get("broken") is True

    @property
    def reference(self) -> str | None:
        """The setting that the others are compared with; None when the run has none."""
        name = self.manifest.get("reference")
        return name if isinstance(name, str) and name in self.kvs() else None

    def frame(self) -> pd.DataFrame:
        """One line a cell; ``kv_memory`` and ``timing`` become ``kv_memory_*`` and ``timing_*`` columns.

        Raises:
            MissingDependency: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as err:
            raise MissingDependency("pandas", "report", "A data frame of rows") from err
        columns = _columns()
        flat = [flat_row(row) for row in self.rows]
        # nullable types from the start: by way of floats a large count with gaps would lose its last digits
        series = {name: pd.Series([line[name] for line in flat], dtype=kind) for name, kind in columns.items()}
        return pd.DataFrame(series)


def parquet_bytes(record: RunRecord) -> bytes:
    """The rows as a parquet file.

    Raises:
        MissingDependency: pandas or pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as err:
        raise MissingDependency("pyarrow", "report", "Writing parquet") from err
    table = pa.Table.from_pandas(record.frame(), preserve_index=False)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def write_parquet(record: RunRecord) -> Path:
    """Write ``rows.parquet`` beside the rows, in one step; returns its path.

    Raises:
        MissingDependency: pandas or pyarrow is not installed.
        StoreError: the file cannot be written.
    """
    target = RunFolder(record.path).file(PARQUET)
    write_atomic(target, parquet_bytes(record))
    return target


def _parse(line: bytes) -> Row:
    data = json.loads(line.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite_float)
    if not isinstance(data, dict):
        raise ValueError("a row is a JSON object")  # noqa: TRY004 - a broken line is one kind of error to its reader
    return Row.from_json(data)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large for a number")
    return value


def _columns() -> dict[str, str | None]:
    """Column names with the nullable pandas type that they need, or None where inference is right."""
    columns: dict[str, str | None] = {}
    for row_field in fields(Row):
        nested = _NESTED.get(row_field.name)
        if nested is None:
            kind = "Int64" if row_field.name in _INTEGERS else "boolean" if row_field.name == "correct" else None
            numbers = {"score", "logprob", "answer_logprob", "depth_real", "cost_usd"}
            columns[row_field.name] = "Float64" if row_field.name in numbers else kind
            continue
        hints = get_type_hints(nested)
        for inner in fields(nested):
            kind = "Int64" if hints[inner.name] == (int | None) else None
            columns[f"{row_field.name}_{inner.name}"] = kind
    return columns


def flat_columns() -> list[str]:
    """Names of all columns of ``flat_row``, in order."""
    return list(_columns())


def flat_row(row: Row) -> dict[str, Any]:
    """A row as one level: ``kv_memory_tokens``, ``timing_total_s`` …; half surrogate pairs become question marks."""
    flat: dict[str, Any] = {}
    for row_field in fields(Row):
        value = getattr(row, row_field.name)
        if row_field.name in _NESTED:
            flat.update({f"{row_field.name}_{inner.name}": getattr(value, inner.name) for inner in fields(value)})
        elif isinstance(value, tuple):
            flat[row_field.name] = [_text(item) for item in value]
        else:
            flat[row_field.name] = _text(value) if isinstance(value, str) else value
    return flat


def _text(value: str) -> str:
    # a model may end in half a surrogate pair, which parquet cannot store
    return value.encode("utf-8", "replace").decode("utf-8")
