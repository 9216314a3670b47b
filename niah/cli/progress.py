"""Progress of a run: a live bar on a terminal, plain lines elsewhere. Talk goes to stderr, results to stdout."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from niah.config import RunConfig
from niah.redact import printable, redact
from niah.runner import events as ev

if TYPE_CHECKING:
    from niah.api import Outcome

PLAIN_EVERY_S = 10.0
PLAIN_WIDTH = 120


def is_live(console: Console) -> bool:
    """A bar only for a person: not in a pipe, a log or CI."""
    return console.is_terminal and not os.environ.get("CI")


class Progress:
    """Shows a run's events."""

    def __init__(self) -> None:
        self.talk = Console(stderr=True, highlight=False)
        self.out = Console(highlight=False)
        if not self.out.is_terminal:
            self.out = Console(highlight=False, width=PLAIN_WIDTH)
        self._live = is_live(self.talk)
        self._bar: Bar | None = None
        self._task: Any = None
        self._started = time.monotonic()
        self._last_line = time.monotonic()
        self._tokens = 0
        self._tokens_total = 0
        self._rows = 0
        self._rows_total = 0
        self._kv = ""

    def __enter__(self) -> Progress:
        self._started = time.monotonic()
        if self._live:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("cells"))
            self._bar = Bar(*columns, TimeElapsedColumn(), TextColumn("{task.fields[rate]}"), console=self.talk)
            self._task = self._bar.add_task("starting", total=None, rate="")
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    @contextmanager
    def preparing(self, config: RunConfig) -> Iterator[None]:
        """Tell what takes long before the first cell, on a first use."""
        from niah.engines.checkpoint.gguf import needs_conversion

        model = config.model or "smollm2"
        if config.backend.name == "transformers" and needs_conversion(model):
            self._say(f"first use of {model}: converting its weights once (about half a minute)")
        yield

    def _say(self, text: str, style: str = "") -> None:
        self.talk.print(printable(redact(text), lines=True), style=style or None, markup=False, soft_wrap=True)

    def handle(self, event: ev.Event) -> None:
        match event:
            case ev.RunStarted():
                self._run_started(event)
            case ev.CellsAdded():
                self._rows_total += event.cells
                self._tokens_total += event.prompt_tokens
                if self._bar is not None:
                    self._bar.update(self._task, total=self._rows_total)
            case ev.SettingStarted():
                self._kv = event.kv
                if not self._live:
                    self._say(f"{event.kv}: {event.pending} cells")
            case ev.CanaryDone():
                style = "" if event.state == "passed" else "bold red" if event.state == "broken" else "yellow"
                self._say(f"{event.kv}: canary {event.state}: {event.why}", style)
            case ev.TokensDone():
                self._tokens += event.count
                self._update()
            case ev.RowDone():
                self._rows += 1
                self._update()
            case ev.Note():
                self._say(event.text, "yellow" if event.warning else "")
            case _:
                pass

    def _run_started(self, event: ev.RunStarted) -> None:
        self._rows_total = event.cells - event.done
        self._tokens_total = event.prompt_tokens
        self._say(f"run folder {event.folder}")
        if event.done or event.failed_before:
            new = self._rows_total - event.failed_before
            self._say(f"{event.done} done, {event.failed_before} failed and asked again, {new} new")
        if self._bar is not None:
            self._bar.update(self._task, total=self._rows_total)

    def _rate(self) -> str:
        elapsed = max(1e-6, time.monotonic() - self._started)
        per_second = self._tokens / elapsed
        if not self._tokens or not self._tokens_total:
            return ""
        left = max(0.0, (self._tokens_total - self._tokens) / per_second)
        time_left = f"{left / 60:.0f} min" if left > 90 else f"{left:.0f} s"
        return f"{per_second:,.0f} tokens/s, {time_left} left"

    def _update(self) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=self._rows, description=self._kv, rate=self._rate())
            return
        now = time.monotonic()
        if now - self._last_line >= PLAIN_EVERY_S and self._rows:
            self._last_line = now
            self._say(f"{self._kv}: {self._rows}/{self._rows_total} cells, {self._rate()}")

    def summary(self, outcome: Outcome) -> None:
        """The results: a table of settings on stdout, and where the files are."""
        from niah.report.data.summary import few_texts
        from niah.report.text.tables import summary_table

        self.out.print(summary_table(outcome.settings))
        for sentence in few_texts(outcome.settings):
            self._say(sentence)
        broken = [s.kv for s in outcome.settings if s.broken]
        if broken:
            names = ", ".join(broken)
            self._say(f"broken: {names}: failed the canary, so this map is not a cost of the setting", "bold red")
        if outcome.failed:
            self._say(f"{outcome.failed} cells failed: the same command asks them again", "yellow")
        if outcome.truncated:
            self._say(
                f"{outcome.truncated} replies were cut off by the answer budget before they held an answer: "
                "--set answer_budget=… gives more room",
                "yellow",
            )
        if outcome.cost_usd is not None:
            from niah.report.data.cost import dollars

            self._say(f"the cells of this run cost {dollars(outcome.cost_usd)}")
        if outcome.status == "interrupted":
            from niah.cli.options import command_line

            self._say(f"interrupted; go on with: {command_line(resuming=True)}", "yellow")
        if outcome.status == "budget":
            self._say(f"stopped at {outcome.stopped_by}", "yellow")
        self.out.print(f"{outcome.folder}/report.html", soft_wrap=True, markup=False)
