"""``hf``: rows of a data set, from the hub or local files, by ``datasets``: ``hf:NAME[/CONFIG][:SPLIT][#COLUMN]``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from niah.errors import ConfigError, MissingDependency, near
from niah.haystacks.text import PARAGRAPH, normalized, seeded_stride
from niah.models.hub import out_of_reach, quiet
from niah.paths import as_path
from niah.prompts import sentences
from niah.prompts.haystack import HaystackOptions, HaystackPlugin

DEFAULT_SPLIT = "train"
DEFAULT_COLUMN = "text"
# the builder in ``datasets`` for each kind of local file
BUILDERS: Mapping[str, str] = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}
# streams start within so many rows where the number of rows is not known beforehand; a prime, so any stride fits
UNKNOWN_ROWS = 10_007
_CHUNK_BYTES = 1 << 20


class HfOptions(HaystackOptions):
    """``hf`` has no options: what to read stands in its argument."""


@dataclass(frozen=True, slots=True)
class Source:
    """What the argument names. ``files`` are given for local data, ``name`` and ``config`` for the hub."""

    argument: str
    name: str
    config: str | None
    split: str
    column: str | None
    files: tuple[Path, ...] = ()


class HfDataset:
    """An opened data set: a row is a paragraph or more.

    Attributes:
        revision: commit of the hub's repository, or ``sha256:…`` of the local files.
        column: the column that is read.
    """

    repeats = False
    language = ""

    def __init__(self, rows: Any, source: Source, revision: str) -> None:
        self._rows = rows
        self._source = source
        self.revision = revision
        first_row, self._row_total = _survey(rows, source)
        self.column = _column(_column_types(rows, first_row), source)
        identity = "\n".join(
            (f"hf 1/{sentences.VERSION}", source.name, source.config or "", source.split, self.column, revision)
        )
        self.digest = hashlib.sha256(identity.encode()).hexdigest()

    def segments(self, stream: int) -> Iterator[str]:
        """Sentences row by row, from a seeded row to the end and then from the first row to there."""
        separator = ""
        with _reading(self._source):
            for text in self._texts(self._start(stream)):
                first, *others = sentences.split_sentences(text)
                yield separator + first
                yield from others
                separator = PARAGRAPH

    def _start(self, stream: int) -> int:
        places = self._row_total or UNKNOWN_ROWS
        return stream * seeded_stride(self.digest, places) % places

    def _texts(self, start: int) -> Iterator[str]:
        """Each row's text once, from row ``start`` on and round to it; rows without text are left out."""
        seen = 0
        for row in self._rows:
            if seen >= start:
                yield from self._text(row)
            seen += 1
        if seen <= start and seen:
            # fewer rows than places: the start is counted on past the end
            yield from self._texts(start % seen)
            return
        for position, row in enumerate(self._rows):
            if position == start:
                return
            yield from self._text(row)

    def _text(self, row: Mapping[str, Any]) -> Iterator[str]:
        value = row.get(self.column)
        if value is None:
            return
        if not isinstance(value, str):
            raise ConfigError(
                f"haystack 'hf:{self._source.argument}': column {self.column!r} holds {type(value).__name__}, "
                "not text; choose another with #COLUMN."
            )
        text = normalized(value)
        if text:
            yield text


def open_hf(options: HfOptions, argument: str) -> HfDataset:  # noqa: ARG001 - sources are opened alike
    """Open a data set for streaming; rows are read when they are asked for.

    Raises:
        MissingDependency: ``datasets`` is not installed.
        ConfigError: there is no such data set, configuration, split or column, or the hub cannot be reached.
    """
    source = parse(argument)
    try:
        import datasets
    except ImportError as err:
        raise MissingDependency("datasets", "hf", "haystack 'hf'") from err
    if source.files:
        rows, revision = _open_local(datasets, source)
    else:
        rows, revision = _open_hub(datasets, source)
    return HfDataset(rows, source, revision)


def parse(argument: str) -> Source:
    """Take ``NAME[/CONFIG][:SPLIT][#COLUMN]`` apart.

    Raises:
        ConfigError: the argument is empty, has too many parts or names a path without data files.
    """
    rest, _, column = argument.partition("#")
    name, _, split = rest.partition(":")
    if not name:
        raise ConfigError("haystack 'hf' needs a data set: use hf:NAME[/CONFIG][:SPLIT][#COLUMN] or a path as NAME.")
    path = as_path(name)
    if path.exists():
        files = _data_files(path, argument)
        if split not in ("", DEFAULT_SPLIT):
            raise ConfigError(
                f"haystack 'hf:{argument}': local files have no split {split!r}; leave :{split} out, or name the file."
            )
        return Source(argument, str(path), None, DEFAULT_SPLIT, column or None, files)
    if name.startswith(("/", ".", "~")) or path.suffix.lower() in BUILDERS:
        raise ConfigError(f"haystack 'hf:{argument}': there is no file or folder {name!r}; check the path.")
    parts = name.split("/")
    if len(parts) > 3 or not all(parts):
        raise ConfigError(
            f"haystack 'hf:{argument}': {name!r} is neither a path nor ORG/NAME/CONFIG; give at most three parts."
        )
    config = parts[2] if len(parts) == 3 else None
    return Source(argument, "/".join(parts[:2]), config, split or DEFAULT_SPLIT, column or None)


def _data_files(path: Path, argument: str) -> tuple[Path, ...]:
    kinds = ", ".join(BUILDERS)
    if path.is_file():
        if path.suffix.lower() not in BUILDERS:
            raise ConfigError(f"haystack 'hf:{argument}': {str(path)!r} is none of {kinds}; use text:PATH for text.")
        return (path,)
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in BUILDERS and p.is_file())
    if not files:
        raise ConfigError(f"haystack 'hf:{argument}': folder {str(path)!r} holds none of {kinds}; give another one.")
    if len({BUILDERS[p.suffix.lower()] for p in files}) > 1:
        raise ConfigError(f"haystack 'hf:{argument}': folder {str(path)!r} mixes kinds of files; give one file.")
    return tuple(files)


def _open_local(datasets: Any, source: Source) -> tuple[Any, str]:
    digest = hashlib.sha256()
    with _reading(source):
        for path in source.files:
            with path.open("rb") as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    digest.update(chunk)
        rows = datasets.load_dataset(
            BUILDERS[source.files[0].suffix.lower()],
            data_files={DEFAULT_SPLIT: [str(p) for p in source.files]},
            split=DEFAULT_SPLIT,
            streaming=True,
        )
    return rows, f"sha256:{digest.hexdigest()}"


def _open_hub(datasets: Any, source: Source) -> tuple[Any, str]:
    from huggingface_hub import HfApi

    quiet()
    if why := out_of_reach():
        raise ConfigError(
            f"haystack 'hf:{source.argument}' is no path on this machine, and {why}. Give a local file or folder."
        )
    with _reading(source):
        # the commit is asked for first and then read, so that the text is the one that the digest names
        revision = HfApi().dataset_info(source.name).sha or ""
        rows = datasets.load_dataset(
            source.name, source.config, split=source.split, streaming=True, revision=revision or None
        )
    return rows, revision


@contextmanager
def _reading(source: Source) -> Iterator[None]:
    """Tell in one sentence what ``datasets`` or the hub did not like."""
    from datasets.exceptions import DatasetsError
    from huggingface_hub.errors import HfHubHTTPError

    # the hub's HTTP library differs between versions; a connection error has the same base as the hub's own error
    http_errors = HfHubHTTPError.__bases__
    try:
        yield
    except (OSError, ValueError, DatasetsError, *http_errors) as err:
        raise _unreadable(source, err) from err


def _unreadable(source: Source, err: Exception) -> ConfigError:
    reason = str(err).strip().splitlines()[0].rstrip(".") if str(err).strip() else type(err).__name__
    advice = "Check the file." if source.files else "Check name and network, or give a local path."
    return ConfigError(f"haystack 'hf:{source.argument}' cannot be opened: {reason}. {advice}")


def _column(types: Mapping[str, bool], source: Source) -> str:
    """The asked column, else ``text``, else the first one with strings."""
    if source.column is not None:
        if source.column not in types:
            raise ConfigError(
                f"haystack 'hf:{source.argument}': no column {source.column!r}.{near(source.column, types)}"
            )
        if not types[source.column]:
            raise ConfigError(
                f"haystack 'hf:{source.argument}': column {source.column!r} does not hold text; choose another."
            )
        return source.column
    if types.get(DEFAULT_COLUMN):
        return DEFAULT_COLUMN
    for name, is_text in types.items():
        if is_text:
            return name
    raise ConfigError(f"haystack 'hf:{source.argument}': none of its columns holds text:{near('', types)}")


def _column_types(rows: Any, first_row: Mapping[str, Any]) -> dict[str, bool]:
    """Whether each column holds strings, by the declared types or, without those, by the first row."""
    if rows.features:
        return {
            name: getattr(feature, "dtype", "") in ("string", "large_string") for name, feature in rows.features.items()
        }
    return {name: isinstance(value, str) for name, value in first_row.items()}


class _Survey(NamedTuple):
    """The first row, and the number of rows where it is known."""

    first_row: Mapping[str, Any]
    row_total: int | None


def _survey(rows: Any, source: Source) -> _Survey:
    """Look at the rows: at all of them in local files, at the first one on the hub."""
    first_row = None
    count = 0
    with _reading(source):
        for row in rows:
            first_row = first_row or row
            count += 1
            if not source.files:
                break
    if first_row is None:
        raise ConfigError(f"haystack 'hf:{source.argument}' has no rows; give another data set or split.")
    if source.files:
        return _Survey(first_row, count)
    split = (rows.info.splits or {}).get(source.split)
    return _Survey(first_row, split.num_examples or None if split else None)


PLUGIN = HaystackPlugin(
    name="hf",
    summary="Rows of a data set, from the hub or local parquet, JSON or CSV: hf:NAME[/CONFIG][:SPLIT][#COLUMN].",
    options=HfOptions,
    open=open_hf,
    install="pip install 'niah-kv[hf]'",
)
