"""The runs of a results folder as a list, and one of them by name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from niah.errors import StoreError
from niah.store.folder import MANIFEST, ROWS, RunFolder

# a row may take minutes on a slow machine; after so long without one a run is probably gone
SILENT_AFTER_S = 600.0
Stamp: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One line of the list of runs.

    Attributes:
        status: of the manifest; ``unreadable`` with the reason in ``note``.
        cells, done: planned cells, and lines of rows so far; cells is 0 where the manifest does not say.
        silent_s: seconds since a running run last wrote anything.
    """

    name: str
    status: str
    started_at: str
    model: str
    backend: str
    task: str
    kvs: tuple[str, ...]
    cells: int
    done: int
    silent_s: float
    note: str = ""

    @property
    def running(self) -> bool:
        return self.status == "running"

    @property
    def silent(self) -> bool:
        """Whether a run that calls itself running has not been heard of for long."""
        return self.running and self.silent_s > SILENT_AFTER_S

    def to_json(self) -> dict[str, Any]:
        """For the list's events; only what changes while a run goes on."""
        kept = ("name", "status", "cells", "done")
        return {name: value for name, value in asdict(self).items() if name in kept} | {"silent": self.silent}


@dataclass(frozen=True, slots=True)
class Results:
    """A results folder, or one run folder of it."""

    folder: Path
    only: str | None = None

    @staticmethod
    def open(path: Path) -> Results:
        """The folder to be shown.

        Raises:
            StoreError: there is no such folder.
        """
        if not path.exists():
            raise StoreError(f"there is no results folder {str(path)!r}. `niah run` makes one; or name another.")
        if not path.is_dir():
            raise StoreError(f"{str(path)!r} is a file, not a results folder. Give the folder that holds the runs.")
        if (path / MANIFEST).is_file():
            path = path.resolve()
            return Results(path.parent, path.name)
        return Results(path)

    def runs(self) -> list[RunFolder]:
        """Run folders, newest first, without links that lead out of the results folder."""
        root = self.folder.resolve()
        paths = [path for path in self.folder.iterdir() if self.only is None or path.name == self.only]
        found = [path for path in paths if (path / MANIFEST).is_file() and path.resolve().parent == root]
        return [RunFolder(path) for path in sorted(found, key=_started, reverse=True)]

    def find(self, name: str) -> RunFolder:
        """The run of that name: looked up in the list, never joined to a path.

        Raises:
            StoreError: there is none.
        """
        for run in self.runs():
            if run.path.name == name:
                return run
        raise StoreError(f"there is no run {name!r} in {str(self.folder)!r}.")

    def entries(self) -> list[RunEntry]:
        """The list, newest first."""
        return [entry_of(run) for run in self.runs()]


def entry_of(run: RunFolder) -> RunEntry:
    """A run's line, whatever is wrong with the run."""
    stamp = state_of(run.path)
    return replace(_entry(run.path, stamp), silent_s=max(0.0, time.time() - max(stamp[0], stamp[2]) / 1e9))


@lru_cache(maxsize=1024)
def _entry(path: Path, stamp: Stamp) -> RunEntry:
    """What the files say; the stamp makes changed files a new entry, so that a long list is not read every second."""
    try:
        manifest = RunFolder(path).manifest()
    except StoreError as err:
        return RunEntry(path.name, "unreadable", "", "", "", "", (), 0, 0, 0.0, str(err))
    asked = _section(manifest, "asked")
    settings = manifest.get("settings")
    cells = _section(manifest, "plan").get("cells")
    return RunEntry(
        name=path.name,
        status=str(manifest.get("status") or "unknown"),
        started_at=str(manifest.get("started_at") or ""),
        model=str(_section(manifest, "model").get("name") or ""),
        backend=str(asked.get("backend") or ""),
        task=str(asked.get("task") or ""),
        kvs=tuple(map(str, settings)) if isinstance(settings, Mapping) else (),
        cells=cells if isinstance(cells, int) else 0,
        done=_lines(path / ROWS, stamp[:2]),
        silent_s=0.0,
    )


def _started(path: Path) -> tuple[float, str]:
    """Start time (seconds since 1970) for the order of the list, of the files where the manifest has none."""
    stamp = state_of(path)
    try:
        moment = datetime.fromisoformat(_entry(path, stamp).started_at)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), path.name
    except (ValueError, OverflowError):
        return stamp[2] / 1e9, path.name


def state_of(path: Path) -> Stamp:
    """What changes whenever a run writes: time (ns) and size of its rows, and time of its manifest."""
    rows, manifest = _stat(path / ROWS), _stat(path / MANIFEST)
    return (*rows, manifest[0])


def _stat(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=1024)
def _lines(path: Path, stamp: tuple[int, int]) -> int:  # noqa: ARG001 - the stamp makes a changed file a new entry
    count = 0
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                count += block.count(b"\n")
    except OSError:
        return 0  # a run that has not written a row
    return count


def _section(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = manifest.get(key)
    return part if isinstance(part, Mapping) else {}
