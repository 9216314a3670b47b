"""Read a run back: rows as far as they are whole, each cell once, and the manifest beside them."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from niah.errors import MissingDependency, StoreError
from niah.store.folder import ROWS, RunFolder, open_run, storing, write_atomic
from niah.store.schema import Row
from niah.store.strict import strict_json
from niah.types import JSON, KVUsage, Timing

if TYPE_CHECKING:
    import pandas as pd

PARQUET = "rows.parquet"
# each is compared, drawn and listed: a folder of strangers must not make that endless
_MOST_SETTINGS = 1_000
_NESTED = {"kv_memory": KVUsage, "timing": Timing}
_NULLABLE = {int: "Int64", float: "Float64", bool: "boolean"}


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
        StoreError: a row was written by a newer niah, or the file cannot be read.
    """
    path = folder.reading(ROWS)
    rows: list[Row] = []
    bad_lines: list[int] = []
    if not path.is_file():
        return RowsRead(rows, torn=False, bad_lines=bad_lines)
    with storing("read", path), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return RowsRead(rows, torn=True, bad_lines=bad_lines)
            if not line.strip():
                continue
            try:
                rows.append(parse_row(line))
            except ValueError:
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
        record = RunRecord(folder.path, folder.manifest(), rows, read.torn, tuple(read.bad_lines))
        if len(record.kvs()) > _MOST_SETTINGS:
            raise StoreError(
                f"{str(folder.path)!r} has {len(record.kvs()):,} KV settings, and a run that is read has at most "
                f"{_MOST_SETTINGS:,}. Restore its files, or run again with --fresh."
            )
        return record

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
        columns = {name: nullable for name, (_, nullable) in _columns().items()}
        flat = [flat_row(row) for row in self.rows]
        # nullable types from the start: by way of floats a large count with gaps would lose its last digits
        series = {name: pd.Series([line[name] for line in flat], dtype=kind) for name, kind in columns.items()}
        return pd.DataFrame(series)


def parquet_bytes(record: RunRecord) -> bytes:
    """The rows as a parquet file.

    Raises:
        MissingDependency: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.json as pj
        import pyarrow.parquet as pq
    except ImportError as err:
        raise MissingDependency("pyarrow", "report", "Writing parquet") from err
    # by way of JSON: a data frame, and even an array made of a list, imports pandas, which takes longer than the rest
    kinds = _columns()
    schema = pa.schema([(name, _arrow_type(pa, kind)) for name, (kind, _) in kinds.items()])
    lines = [json.dumps({name: _finite(value) for name, value in flat_row(row).items()}) for row in record.rows]
    if lines:
        text = io.BytesIO("\n".join(lines).encode())
        options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
        # one block for all: a line must not be longer than a block
        block = pj.ReadOptions(use_threads=False, block_size=len(text.getbuffer()) + 1)
        table = pj.read_json(text, read_options=block, parse_options=options)
    else:
        table = schema.empty_table()
    table = table.replace_schema_metadata({"pandas": json.dumps(_for_pandas(kinds))})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def write_parquet(record: RunRecord) -> Path:
    """Write ``rows.parquet`` beside the rows, in one step; returns its path.

    Raises:
        MissingDependency: pyarrow is not installed.
        StoreError: the file cannot be written.
    """
    target = RunFolder(record.path).file(PARQUET)
    write_atomic(target, parquet_bytes(record))
    return target


def parse_row(line: bytes) -> Row:
    """One line of ``rows.jsonl``.

    Raises:
        ValueError: it is no row. StoreError: a newer niah wrote it.
    """
    data = strict_json(line.decode("utf-8"))
    if not isinstance(data, dict):
        raise ValueError("a row is a JSON object")  # noqa: TRY004 - a broken line is one kind of error to its reader
    return Row.from_json(data)


def _columns() -> dict[str, tuple[Any, str | None]]:
    """Columns by name: the type of their values, and the nullable type that pandas needs where some may be missing."""
    columns: dict[str, tuple[Any, str | None]] = {}
    for name, hint in get_type_hints(Row).items():
        if name not in _NESTED:
            columns[name] = _kind(hint)
            continue
        for inner, inner_hint in get_type_hints(_NESTED[name]).items():
            columns[f"{name}_{inner}"] = _kind(inner_hint)
    return columns


def _kind(hint: Any) -> tuple[Any, str | None]:
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] if type(None) in get_args(hint) else [hint]
    kind = str if get_origin(kinds[0]) is Literal else kinds[0]
    is_nullable = kinds != [hint]
    return kind, _NULLABLE.get(kind) if is_nullable else None


def _arrow_type(pa: Any, kind: Any) -> Any:
    plain = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    return plain[kind] if kind in plain else pa.list_(pa.string())


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _for_pandas(columns: Mapping[str, tuple[Any, str | None]]) -> dict[str, Any]:
    """What pandas reads beside the columns, so that whole numbers with gaps do not come back as floats.

    Source: https://pandas.pydata.org/docs/development/developer.html, "Storing pandas DataFrame objects in Parquet".
    """
    words = {"Int64": "int64", "Float64": "float64", "boolean": "bool"}
    found = [
        {"name": name, "field_name": name, "pandas_type": words[kind], "numpy_type": kind, "metadata": None}
        for name, (_, kind) in columns.items()
        if kind is not None
    ]
    return {"index_columns": [], "column_indexes": [], "columns": found}


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
