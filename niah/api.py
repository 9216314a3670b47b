"""The Python interface: run, load, and what is written when a run ends. The command line calls the same code."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from niah._version import __version__
from niah.config import RunConfig, build_config, normalize, plugin_files
from niah.config import merge as merge_layers
from niah.errors import ConfigError, MissingDependency
from niah.registry import add_file
from niah.report.data.comparison import ComparisonReport, compare_records
from niah.report.data.cost import total_cost
from niah.report.data.summary import SettingSummary, summaries
from niah.report.palette import Palette
from niah.runner import events as ev
from niah.runner.adaptive import Rounds
from niah.runner.answer_cache import opened_cache
from niah.runner.difficulty import choose, resolved, sentence
from niah.runner.loop import run_plan
from niah.runner.manifest import Manifest
from niah.runner.plan import Plan, make_plan
from niah.runner.state import Stop
from niah.stats.sequential import undecided
from niah.store.folder import RunFolder, open_run
from niah.store.merge import Merged, merge_into, whole_of
from niah.store.metrics import write_metrics
from niah.store.read import RunRecord, write_parquet
from niah.store.sound import check_manifest

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from niah.report.figures.heatmap import Axes

T = TypeVar("T")
_EXIT_BY_STATUS = {"finished": 0, "budget": 5, "interrupted": 130}


@dataclass(frozen=True, eq=False)
class RunComparison(ComparisonReport):
    """What ``niah.compare`` gives: verdicts with intervals, as a table, a data frame or Markdown."""

    @classmethod
    def of(cls, report: ComparisonReport) -> RunComparison:
        return cls(report.items, report.points, report.notes)

    def frame(self) -> pd.DataFrame:
        """One line a comparison, with the names of ``--json``; intervals become ``_low`` and ``_high`` columns.

        Raises:
            MissingDependency: pandas is not installed.
        """
        from niah.report.text.comparison import comparison_frame

        return comparison_frame(self)

    def table(self) -> RenderableType:
        """The table of the command line, for a terminal or a notebook."""
        from niah.report.text.comparison import verdict_table

        return verdict_table(self)

    def markdown(self) -> str:
        """For a pull request."""
        from niah.report.text.comparison import markdown

        return markdown(self)


class Run(RunRecord):
    """A run folder read back: ``rows``, ``manifest``, ``frame()``, ``heatmap()``."""

    def heatmap(self, kv: str | None = None, palette: str = "cividis") -> Axes:
        """The depth × length heatmap of one setting (the first when not named) as matplotlib axes.

        Raises:
            ConfigError: no such setting in this run.
        """
        from niah.report.data.grid import record_grid
        from niah.report.figures.heatmap import heatmap

        kvs = self.kvs()
        name = kv or kvs[0]
        if name not in kvs:
            raise ConfigError(f"this run has no KV setting {name!r}; it has {', '.join(kvs)}.")
        if palette not in ("cividis", "classic"):
            raise ConfigError(f"no palette named {palette!r}; use cividis or classic.")
        return heatmap(record_grid(self, name), palette="classic" if palette == "classic" else "cividis")


@dataclass(frozen=True)
class Outcome:
    """How a run ended. ``exit_code`` is what the command returns."""

    folder: Path
    status: str
    exit_code: int
    cells: int
    answered: int
    refused: int
    truncated: int
    failed: int
    settings: tuple[SettingSummary, ...]
    stopped_by: str = ""

    @property
    def cost_usd(self) -> float | None:
        """What the cells of the run were billed, all its parts together; None where nobody knows."""
        return total_cost(self.settings)

    def to_json(self) -> dict[str, Any]:
        """The document of ``niah run --json``."""
        done = self.answered + self.refused + self.truncated + self.failed
        return {
            "run": str(self.folder),
            "status": self.status,
            "stopped_by": self.stopped_by,
            "cost_usd": self.cost_usd,
            "cells": self.cells,
            "answered": self.answered,
            "refused": self.refused,
            "truncated": self.truncated,
            "failed": self.failed,
            "skipped": max(0, self.cells - done),
            "settings": [setting_json(s) for s in self.settings],
            "exit": self.exit_code,
        }


def setting_json(summary: SettingSummary) -> dict[str, Any]:
    """One setting's line in a JSON document."""
    total = summary.total
    return {
        "kv": summary.kv,
        "accuracy": total.share,
        "ci": [total.interval.low, total.interval.high] if total.share is not None else None,
        "n": total.answered,
        "contexts": total.contexts,
        "ci_assumed": total.is_assumed,
        "asked": total.trials,
        "accuracy_of_asked": summary.share_of_asked,
        "kv_bytes_per_token": summary.kv_bytes_per_token,
        "broken": summary.broken,
        "cost_usd": summary.cost_usd,
    }


def plan_run(config: RunConfig) -> Plan:
    """Think a run through; raises when it cannot run, naming the first reason and counting the others."""
    plan = make_plan(config)
    if plan.problems:
        first, rest = plan.problems[0], len(plan.problems) - 1
        more = f" ({rest} more: see niah plan)" if rest else ""
        raise ConfigError(first.sentence() + more)
    return plan


def execute(plan: Plan, sinks: Sequence[ev.Sink] = (), *, fresh: bool = False, command: str = "") -> Outcome:
    """Run a plan to its end, write figures and report, and say how it went.

    Raises:
        NiahError: the engine cannot be opened or the folder cannot be written; rows that exist are kept.
    """
    shard = f"-shard-{plan.config.shard.replace('/', '-of-')}" if plan.config.shard else ""
    label = f"{Path(plan.info.name).name}-{plan.backend.name}{shard}"
    today = datetime.now(UTC).date().isoformat()
    events = ev.Events(sinks)
    with opened_cache(plan):
        pass  # one that cannot be used is told before there is a run folder
    with RunFolder.find_or_create(Path(plan.config.out), label, plan.run_identity(), today, fresh=fresh) as folder:
        manifest = Manifest(plan, folder, command, __version__)
        limit = plan.config.max_minutes
        stop = Stop(deadline=time.monotonic() + 60 * limit if limit else None)
        if plan.config.difficulty:
            plan = _at_difficulty(plan, manifest, events)
            manifest = Manifest(plan, folder, command, __version__)
        rounds = Rounds(plan, undecided) if plan.config.grid.auto_trials else None
        status = _run_loop(_with_signals(plan, folder, manifest, events, stop, rounds))
        record = RunRecord.load(folder.path)
        for note in write_outputs(record, plan):
            events.emit(ev.Note(note))
        return _outcome(plan, record, folder.path, status, stop.why)


def _at_difficulty(plan: Plan, manifest: Manifest, events: ev.Events) -> Plan:
    """The plan with the rung that a probe chooses now, or that it chose when this folder was first run."""
    record = manifest.difficulty
    if record is None:
        record = _run_loop(choose(plan))
        manifest.choose_difficulty(record)
    events.emit(ev.Note(sentence(record)))
    return plan_run(resolved(plan.config, record["chosen"]))


def _run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in a loop of its own: in a thread where this one has a loop already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def _with_signals(
    plan: Plan, folder: RunFolder, manifest: Manifest, events: ev.Events, stop: Stop, rounds: Rounds | None
) -> str:
    """The first Ctrl-C (or SIGTERM) ends the run after what is in flight; the second ends it now."""
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.reason == "interrupted":
            try:
                manifest.finish("interrupted")
            finally:
                os._exit(130)  # a model's forward pass in another thread cannot be cancelled
        stop.reason = "interrupted"
        events.emit(ev.Note("stopping after what is in flight; press Ctrl-C again to stop now", warning=True))

    handled = []
    for sig in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(sig, on_signal)
            handled.append(sig)
        except (NotImplementedError, RuntimeError, ValueError):
            continue  # not in the main thread (a notebook), or a system without signals
    try:
        return await run_plan(plan, folder, manifest, events, stop, rounds)
    finally:
        for sig in handled:
            loop.remove_signal_handler(sig)


def _outcome(plan: Plan, record: RunRecord, folder: Path, status: str, why: str) -> Outcome:
    found = summaries(record)
    totals = [s.total for s in found]
    failed = sum(t.failed for t in totals)
    code = _EXIT_BY_STATUS[status]
    # a cell without an answer, for whatever reason, is not "all answered"
    if code == 0 and (any(t.answered < t.trials for t in totals) or any(s.broken for s in found)):
        code = 3
    return Outcome(
        folder=folder,
        status=status,
        exit_code=code,
        cells=plan.cell_count,
        answered=sum(t.answered for t in totals),
        refused=sum(t.refused for t in totals),
        truncated=sum(t.truncated for t in totals),
        failed=failed,
        settings=tuple(found),
        stopped_by=why,
    )


def write_outputs(
    record: RunRecord, plan: Plan | None = None, palette: Palette = "cividis", *, trust: bool = False
) -> list[str]:
    """Parquet, heatmaps, difference maps, memory figure and report; returns notes on what could not be written.

    Args:
        plan: what the run came from; without it the needles' surroundings are read or built again from the manifest.
        trust: for that, do what the folder says: load its plugins, ask its server, open its text.
    """
    notes = []
    try:
        write_parquet(record)
        write_metrics(record.path)
    except MissingDependency as err:
        notes.append(str(err))
    try:
        write_figures(record, palette)
    except MissingDependency as err:
        notes.append(str(err))
    from niah.report.data.surroundings import surroundings_of, write_surroundings
    from niah.report.page.html import write_report

    around = surroundings_of(record, plan, trust=trust)
    if around.pairs:
        write_surroundings(record.path, around)
    write_report([record], record.path / "report.html", palette, [around])
    return notes


def write_figures(record: RunRecord, palette: Palette = "cividis") -> list[Path]:
    """PNG and SVG files of a run, in its own folder."""
    from niah.report.data.difference import record_differences
    from niah.report.data.grid import record_grid
    from niah.report.figures.difference import save_difference
    from niah.report.figures.heatmap import save_heatmap
    from niah.report.figures.over_length import save_memory
    from niah.report.palette import file_stem

    written: list[Path] = []
    for kv in record.kvs():
        written += save_heatmap(record_grid(record, kv), record.path / f"heatmap-{file_stem(kv)}", palette)
    for difference in record_differences(record):
        written.append(save_difference(difference, record.path / f"compare-{file_stem(difference.kv)}.png"))
    memory = save_memory(record, record.path / "memory.png")
    return [*written, *([memory] if memory else [])]


def run(config: RunConfig | Mapping[str, Any] | None = None, /, *, fresh: bool = False, **settings: Any) -> Run:
    """Measure and read back: ``niah.run(backend="oracle", lengths="2k", depths=21)``.

    Args:
        config: a ``RunConfig``, or a mapping with the keys of the YAML file.
        settings: top-level keys of the config; ``lengths``, ``depths``, ``trials`` and ``seed`` go to the grid.

    Raises:
        NiahError: as the command line would, with the same sentences.
    """
    base = config.to_json() if isinstance(config, RunConfig) else dict(config or {})
    for path in [*plugin_files(base.get("plugins") or ()), *plugin_files(settings.get("plugins") or ())]:
        add_file(Path(path))
    grid: dict[str, Any] = {k: settings.pop(k) for k in ("lengths", "depths", "trials", "seed") if k in settings}
    if "trials" in grid:
        grid["auto_trials"] = False  # a number replaces an auto of the config; "auto" sets it again
    data = merge_layers(normalize(base), normalize(settings), {"grid": grid} if grid else {})
    outcome = execute(plan_run(build_config(data)), fresh=fresh, command="niah.run(…)")
    return load(outcome.folder)


def load(path: str | Path) -> Run:
    """Read a run folder, or the newest run in a folder of runs.

    Raises:
        StoreError: it is no run folder, or its ``run.json`` is not as niah writes it.
    """
    record = RunRecord.load(open_run(Path(path)).path)
    check_manifest(record.manifest, record.path)
    return Run(record.path, record.manifest, record.rows, record.torn, record.bad_lines)


def merge(*shards: str | Path, out: str | Path | None = None) -> Run:
    """Put shards of a run together; see ``merge_shards``."""
    return load(merge_shards(shards, out)[0])


def merge_shards(shards: Sequence[str | Path], out: str | Path | None = None) -> tuple[Path, Merged]:
    """Put shards of a run together; returns the merged run's folder and what the merge came to.

    Args:
        out: folder of run folders; None is where the first shard is.

    Raises:
        ConfigError: they are not shards of one run. StoreError: a folder cannot be read or written.
    """
    if not shards:
        raise ConfigError("give the folders of the shards, such as results/*-shard-*.")
    records = [load(path) for path in shards]
    whole = whole_of(records)
    label = records[0].path.name.split("-shard-")[0][len("2026-01-01-") :]
    today = datetime.now(UTC).date().isoformat()
    target = Path(out) if out is not None else records[0].path.parent
    with RunFolder.find_or_create(target, label, whole, today, fresh=False) as folder:
        found = merge_into(folder, records)
        for note in write_outputs(RunRecord.load(folder.path)):
            found = replace(found, notes=(*found.notes, note))
        return folder.path, found


def compare(
    *runs: str | Path | RunRecord,
    base: str | None = None,
    kvs: Sequence[str] | None = None,
    margin: float = 0.02,
    bar: float = 0.85,
) -> RunComparison:
    """Compare the KV settings of one run with its reference, or further runs with the first, setting by setting.

    Args:
        runs: folders, or what ``run`` and ``load`` gave.
        base: the setting of the first run to compare with, instead of the reference or of the same setting.
        kvs: only these new settings.
        margin: largest difference in accuracy, as a share, that counts as none.
        bar: accuracy that the effective length must hold.

    Raises:
        ConfigError: nothing can be joined, or a name or number is impossible.
        StoreError: a folder is no run, or was written by a newer niah.
    """
    if not runs:
        raise ConfigError("give a run to compare, such as results/latest.")
    records = [run if isinstance(run, RunRecord) else load(run) for run in runs]
    return RunComparison.of(compare_records(records, base_kv=base, kvs=kvs, margin=margin, bar=bar))
