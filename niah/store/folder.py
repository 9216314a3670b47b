"""A run folder: found by what was asked, locked by one writer, appended a row at a time."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from niah.errors import StoreError
from niah.redact import without_secrets
from niah.store.schema import Row
from niah.store.strict import strict_json
from niah.types import JSON

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

MANIFEST = "run.json"
ROWS = "rows.jsonl"
TORN = "rows.torn"
LOCK = ".lock"
MANIFEST_SCHEMA = 1
_LABEL_LIMIT = 80
_HELD_BY_OTHER = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_TAIL_BLOCK = 1 << 16


@contextmanager
def storing(action: str, path: Path) -> Iterator[None]:
    """Turn the operating system's refusal into one sentence."""
    try:
        yield
    except OSError as err:
        reason = (err.strerror or str(err)).lower()
        raise StoreError(
            f"cannot {action} {str(path)!r}: {reason}. Free some space or permit writing, or choose another folder "
            "with --out."
        ) from err


class RunFolder:
    """One run on disk. Reading needs no lock; the first write takes it and keeps it until ``close``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows: int | None = None
        self._lock: int | None = None

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @staticmethod
    def find_or_create(out: Path, label: str, identity: str, today: str, *, fresh: bool) -> RunFolder:
        """The run folder of what was asked, locked for writing.

        Args:
            out: folder of run folders; made when missing.
            label: for people; reduced to ``[a-z0-9._-]``.
            identity: hash of what was asked. A folder whose name ends in it is found again whatever its date.
            today: ISO date for a new folder's name.
            fresh: make a new folder even when one exists.

        Raises:
            StoreError: ``out`` cannot be written or is a file, or another process writes this run.
        """
        if not re.fullmatch(r"[a-z0-9]+", identity):
            raise ValueError(f"identity {identity!r} must be lower-case letters and digits")
        with storing("make a run folder in", out):
            if out.exists() and not out.is_dir():
                raise StoreError(f"{str(out)!r} is a file, not a folder of runs. Choose another folder with --out.")
            out.mkdir(parents=True, exist_ok=True)
            found = [] if fresh else _runs_ending(out, identity)
            path = max(found, key=_started) if found else _make(out, _safe(label), identity, _safe(today), fresh=fresh)
        folder = RunFolder(path)
        folder.lock()
        return folder

    def file(self, name: str) -> Path:
        """The path of a file to be written in this folder.

        Raises:
            StoreError: the name is not a plain file name, or a link of that name leads out of the folder.
        """
        path = self.path / name
        if name in {"", ".", ".."} or Path(name).name != name:
            raise StoreError(f"{name!r} is not a file name inside a run folder. Use a name without a path.")
        if path.is_symlink() and not path.resolve().is_relative_to(self.path.resolve()):
            raise StoreError(f"{str(path)!r} is a link that leads out of the run folder. Remove it and start again.")
        return path

    def reading(self, name: str) -> Path:
        """The path of a file to be read in this folder; nothing may be there.

        Raises:
            StoreError: a link of that name leads out of the folder, or it is no plain file: a folder from elsewhere
                could have other files shown, or a reader wait for ever.
        """
        path = self.file(name)
        with storing("read", path):
            if path.exists() and not path.is_file():
                raise StoreError(f"{str(path)!r} is no plain file, so it is not read. Remove it or restore the file.")
        return path

    def lock(self) -> None:
        """Become the only writer of this run; does nothing when this object is already.

        Raises:
            StoreError: another process writes it.
        """
        if self._lock is not None:
            return
        path = self.file(LOCK)
        with storing("write", path):
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock_file(handle)
        except OSError as err:
            os.close(handle)
            if err.errno not in _HELD_BY_OTHER:
                raise StoreError(
                    f"cannot lock {str(path)!r}: {err.strerror}. Choose a disk with file locks by --out."
                ) from err
            raise StoreError(
                f"the run {str(self.path)!r} is being written by another process. Wait until it ends, or start a "
                "separate run with --fresh or another --out."
            ) from err
        self._lock = handle

    def append(self, row: Row) -> None:
        """Add one row as one line; it is on disk when this returns.

        Raises:
            StoreError: the file cannot be written, or another process writes this run.
        """
        self.lock()
        line = _line(row)
        with storing("write", self.path / ROWS):
            if self._rows is None:
                self._rows = self._open_rows()
            try:
                _write_all(self._rows, line)
                os.fsync(self._rows)
            except OSError:
                # half a line may be there: the next append must look at the tail again
                os.close(self._rows)
                self._rows = None
                raise

    def _open_rows(self) -> int:
        handle = os.open(self.file(ROWS), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._drop_torn_tail(handle)
        except OSError:
            os.close(handle)
            raise
        return handle

    def _drop_torn_tail(self, handle: int) -> None:
        """Cut off a line that a killed writer left without its end; its bytes are kept in ``rows.torn``."""
        size = os.fstat(handle).st_size
        keep = _end_of_last_line(handle, size)
        if keep == size:
            return
        os.lseek(handle, keep, os.SEEK_SET)
        torn = _read_exactly(handle, size - keep)
        copy = os.open(self.file(TORN), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _write_all(copy, torn + b"\n")
            os.fsync(copy)
        finally:
            os.close(copy)
        os.ftruncate(handle, keep)

    def write_manifest(self, manifest: Mapping[str, JSON]) -> None:
        """Replace ``run.json`` in one step: a reader sees the old or the new one, never half of it.

        Raises:
            StoreError: it cannot be written, or another process writes this run.
        """
        self.lock()
        target = self.file(MANIFEST)
        text = json.dumps(dict(manifest), indent=1, ensure_ascii=True, allow_nan=False) + "\n"
        write_atomic(target, without_secrets(text).encode())

    def manifest(self) -> dict[str, JSON]:
        """What ``run.json`` says.

        Raises:
            StoreError: it is missing, not a JSON object, or written by a newer niah.
        """
        path = self.reading(MANIFEST)
        try:
            data = strict_json(path.read_bytes().decode("utf-8"))
        except FileNotFoundError as err:
            raise StoreError(
                f"{str(self.path)!r} holds no {MANIFEST}, so it is no run folder. Give one that `niah run` made."
            ) from err
        except (OSError, ValueError) as err:
            raise StoreError(f"{str(path)!r} cannot be read: {err}. Restore it, or run again with --fresh.") from err
        if not isinstance(data, dict):
            raise StoreError(f"{str(path)!r} holds no JSON object. Restore it, or run again with --fresh.")
        schema = data.get("schema", MANIFEST_SCHEMA)
        if isinstance(schema, int) and schema > MANIFEST_SCHEMA:
            raise StoreError(f"{str(path)!r} has schema {schema}, written by a newer niah. Update niah to read it.")
        return data

    def close(self) -> None:
        """Close the rows and give the lock back. The folder can be written again afterwards."""
        for handle in (self._rows, self._lock):
            if handle is not None:
                os.close(handle)  # closing also frees the lock
        self._rows = self._lock = None


def open_run(path: Path) -> RunFolder:
    """A run folder for reading: ``path`` itself, or the newest run in it (``results`` and ``results/latest`` alike).

    Raises:
        StoreError: there is no such folder, or no run in it.
    """
    if path.name == "latest" and not path.exists():
        path = path.parent
    if not path.exists():
        raise StoreError(f"there is no run folder {str(path)!r}. `niah list runs` shows those in the results folder.")
    if not path.is_dir():
        raise StoreError(f"{str(path)!r} is a file, not a run folder. Give the folder that holds {MANIFEST}.")
    if (path / MANIFEST).is_file():
        return RunFolder(path)
    if (path / ROWS).exists():
        raise StoreError(
            f"{str(path)!r} has rows, but its {MANIFEST} is missing. Restore it, or run the command again."
        )
    with storing("read", path):
        runs = [p for p in path.iterdir() if (p / MANIFEST).is_file()]
    if not runs:
        raise StoreError(f"{str(path)!r} holds no {MANIFEST} and no run folders. Give a folder that `niah run` made.")
    return RunFolder(max(runs, key=_started))


def list_runs(out: Path) -> list[RunFolder]:
    """Run folders in a results folder, newest first; empty when there are none."""
    if not out.is_dir():
        return []
    with storing("read", out):
        runs = [p for p in out.iterdir() if (p / MANIFEST).is_file()]
    return [RunFolder(p) for p in sorted(runs, key=_started, reverse=True)]


def write_atomic(target: Path, data: bytes) -> None:
    """Write a whole file in one step through a neighbour that is renamed.

    Raises:
        StoreError: it cannot be written; an older file stays as it is.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with storing("write", target):
        try:
            # O_EXCL: never through somebody's link of that name
            temporary.unlink(missing_ok=True)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                _write_all(handle, data)
                os.fsync(handle)
            finally:
                os.close(handle)
            temporary.replace(target)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


def _safe(label: str) -> str:
    short = re.sub(r"[^a-z0-9._-]+", "-", label.lower())[:_LABEL_LIMIT]
    return short.strip("-._") or "run"


def _runs_ending(out: Path, identity: str) -> list[Path]:
    return [p for p in out.glob(f"*-{identity}") if p.is_dir() and not p.is_symlink()]


def _make(out: Path, label: str, identity: str, today: str, *, fresh: bool) -> Path:
    path = out / f"{today}-{label}-{identity}"
    number = 2
    while fresh and (path.exists() or path.is_symlink()):
        path = out / f"{today}-{label}-{number}-{identity}"
        number += 1
    # not fresh: two processes may come here at once; the lock decides between them
    path.mkdir(exist_ok=not fresh)
    return path


def _started(path: Path) -> tuple[float, str]:
    """Start time in seconds since 1970, from the manifest or else from the folder itself; the name breaks ties."""
    with suppress(OSError, ValueError, TypeError, AttributeError, OverflowError, StoreError):
        manifest = strict_json(RunFolder(path).reading(MANIFEST).read_text(encoding="utf-8"))
        moment = datetime.fromisoformat(manifest.get("started_at"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), path.name
    return path.stat().st_mtime, path.name


def _line(row: Row) -> bytes:
    data = row.to_json()
    text = without_secrets(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # half a surrogate pair in a model's answer has no UTF-8 form, but it has a JSON escape
        text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        return without_secrets(text).encode() + b"\n"


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _read_exactly(handle: int, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        block = os.read(handle, size - len(parts))
        if not block:
            break
        parts += block
    return bytes(parts)


def _end_of_last_line(handle: int, size: int) -> int:
    """Offset just behind the last newline; 0 when there is none."""
    end = size
    while end > 0:
        start = max(0, end - _TAIL_BLOCK)
        os.lseek(handle, start, os.SEEK_SET)
        newline = _read_exactly(handle, end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _lock_file(handle: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
