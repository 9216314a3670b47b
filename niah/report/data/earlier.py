"""What earlier runs of a model tell a plan: how far changes of one text go together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from niah.errors import StoreError
from niah.report.data.comparison import manifest_value
from niah.stats.correlation import changes_together_over
from niah.stats.pairs import Pairs, join_rows
from niah.stats.power import ASSUMED_CORRELATION, MIN_CONTEXTS
from niah.store.folder import list_runs
from niah.store.read import RunRecord

# the newest say most about what is run now, and a folder may hold hundreds
_RUNS = 5
# below, a correlation of changes is noise
_CHANGED_PAIRS = 10


@dataclass(frozen=True, slots=True)
class Correlation:
    """How far changes of one text are taken to go together, 0 to below 1, and in words where that comes from."""

    value: float
    source: str


def assumed_correlation(results: Path, model: str) -> Correlation:
    """The correlation that a plan assumes: of the newest runs of ``model`` in the folder ``results``, else 0.05.

    A run counts where settings were compared with its reference on at least six texts of several questions, and at
    least ten pairs changed. What cannot be read is passed over: a plan does not fail because of another run.
    """
    used, parts = 0, []
    for path in _runs(results, model):
        if used == _RUNS:
            break
        found = _changes(path)
        parts += found
        used += bool(found)
    value = changes_together_over(parts)
    if value is None:
        return Correlation(ASSUMED_CORRELATION, f"taken for granted: no earlier run of {model} in {results} shows it")
    return Correlation(value, f"seen in {used} earlier run{'' if used == 1 else 's'} of {model} in {results}")


def _runs(results: Path, model: str) -> Iterator[Path]:
    """Folders of the model's runs, newest first; a manifest costs nothing to look at, rows may be many."""
    try:
        folders = list_runs(results)
    except StoreError:
        return
    for folder in folders:
        try:
            manifest = folder.manifest()
        except StoreError:
            continue
        if manifest_value(manifest, "model.name") == model:
            yield folder.path


def _changes(path: Path) -> list[Pairs]:
    """Pairs of every setting of a run with its reference that can show a correlation."""
    try:
        record = RunRecord.load(path)
    except StoreError:
        return []
    reference = record.reference
    if reference is None or record.broken(reference):
        return []
    base = [row for row in record.rows if row.kv == reference]
    others = [kv for kv in record.kvs() if kv != reference and not record.broken(kv)]
    pairs = [join_rows(base, [row for row in record.rows if row.kv == kv]) for kv in others]
    return [p for p in pairs if p.context_count >= MIN_CONTEXTS and p.lost + p.gained >= _CHANGED_PAIRS]
