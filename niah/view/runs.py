"""The runs of a results folder as a list, and one of them by name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from niah.errors import StoreError
from niah.store.folder import MANIFEST, ROWS, RunFolder, list_runs

# a row may take minutes on a slow machine; after so long without one a run is probably gone
SILENT_AFTER_S = 600.0


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
        found = [run for run in list_runs(self.folder) if run.path.resolve().parent == root]
        return [run for run in found if self.only is None or run.path.name == self.only]

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
    try:
        manifest = run.manifest()
    except StoreError as err:
        return RunEntry(run.path.name, "unreadable", "", "", "", "", (), 0, 0, 0.0, str(err))
    asked = _section(manifest, "asked")
    settings = manifest.get("settings")
    cells = _section(manifest, "plan").get("cells")
    stamp = state_of(run.path)
    return RunEntry(
        name=run.path.name,
        status=str(manifest.get("status") or "unknown"),
        started_at=str(manifest.get("started_at") or ""),
        model=str(_section(manifest, "model").get("name") or ""),
        backend=str(asked.get("backend") or ""),
        task=str(asked.get("task") or ""),
        kvs=tuple(map(str, settings)) if isinstance(settings, Mapping) else (),
        cells=cells if isinstance(cells, int) else 0,
        done=_lines(run.path / ROWS, stamp),
        silent_s=max(0.0, time.time() - max(stamp[0], stamp[2]) / 1e9),
    )


def state_of(path: Path) -> tuple[int, int, int]:
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
def _lines(path: Path, stamp: tuple[int, int, int]) -> int:  # noqa: ARG001 - the stamp makes a changed file a new entry
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
