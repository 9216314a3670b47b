"""Every fault × (one at a time, several at once), with a kill -9 in between and a run that goes on.

Claimed and asserted for each: every cell ends exactly once, none is lost, none is scored from an error, and the
tokens of every answer are counted once. ``docs/fault-matrix.md`` is what these tests found: ``UPDATE_DOCS=1`` writes it
anew.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from tests.engines.hosted import child
from tests.engines.hosted.peer import FAULTS, Peer
from tests.helpers import ROOT

TABLE = ROOT / "docs" / "fault-matrix.md"
MODES = {"sequential": 1, "concurrent": 4}
CELLS = 12
CANARIES = 4
# where the run is held and killed: this many answers, canaries included, have been given
HELD_AFTER = 11
# answer requests that meet the fault: among the canaries, before the kill, and two after it
FAULTY = (3, 7, 8, 15, 18)
DONE = {
    "429 with Retry-After": "asked again after the time told, by all requests",
    "429 without Retry-After": "asked again, later each time",
    "timeout before the reply": "asked again; what the server did meanwhile has no second row",
    "stream cut off": "asked again; the part that came is thrown away",
    "empty answer": "asked again; not judged",
    "answer in another field": "asked again; not judged as an empty answer",
    "wrong usage": "answer kept, the difference to our count is on the row",
    "duplicate reply": "asked again; another cell's reply is not this one's",
    "401 in mid-run": "stops at once, in-flight answers are kept; the next run goes on",
}


@pytest.fixture(scope="module")
def context() -> Any:
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload([child.__name__])
    return found


@dataclass
class Runs:
    """Runs of one command, one after the other, each in a process of its own."""

    context: Any
    peer: Peer
    out: Path
    settings: dict[str, Any]

    def start(self) -> ForkServerProcess:
        process = self.context.Process(target=child.run, args=(self.settings, str(self.out / "heard.txt")))
        process.start()
        return process

    def to_end(self) -> int:
        process = self.start()
        process.join(60)
        assert process.exitcode is not None, "the run hangs"
        return process.exitcode

    def rows(self) -> list[dict[str, Any]]:
        files = list((self.out / "runs").glob("*/rows.jsonl"))
        return [
            json.loads(line)
            for file in files
            for line in file.read_bytes().splitlines(keepends=True)
            if line[-1:] == b"\n"
        ]

    def heard(self) -> str:
        file = self.out / "heard.txt"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def peer() -> Iterator[Peer]:
    found = Peer(latency_s=0.004)
    yield found
    found.stop()


@pytest.fixture
def runs(context: Any, peer: Peer, tmp_path: Path) -> Runs:
    options = {
        "name": "openai",
        "base_url": peer.url,
        "tokenizer": "words",
        "request_timeout_s": 0.5,
        "retry_wait_s": 0.02,
    }
    settings = {
        "backend": options,
        "model": "peer",
        "haystack": "noise",
        "out": str(tmp_path / "runs"),
        "grid": {"lengths": "512", "depths": "3", "trials": CELLS // 3},
    }
    return Runs(context, peer, tmp_path, settings)


@pytest.mark.proof(one_in=3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", FAULTS)
def test_fault(runs: Runs, peer: Peer, fault: str, mode: str) -> None:
    runs.settings["backend"] |= {"concurrency": MODES[mode], "stream": fault == "stream cut off"}
    peer.schedule = dict.fromkeys(FAULTY, fault)
    codes = _killed_in_between(runs, peer) if fault != "401 in mid-run" else _stopped_and_killed(runs, peer)
    rows = runs.rows()
    answered = [row for row in rows if row["outcome"] == "answered"]
    once = Counter(row["cell_id"] for row in answered)
    lost = CELLS - len(once)
    from_errors = sum(not row["correct"] or row["answer"] != row["expected"][0] for row in answered)
    from_errors += sum(row["correct"] is not None or row["score"] is not None for row in rows if row not in answered)
    tokens = sum(row["engine_prompt_tokens"] + row["output_tokens"] for row in answered)
    given = sum(sum(peer.delivered[row["expected"][0]]) for row in answered)
    line = _line(
        fault,
        mode,
        cells=f"{len(once)} of {CELLS}",
        twice=sum(count > 1 for count in once.values()),
        lost=lost,
        from_errors=from_errors,
        once="yes" if tokens == given else f"{tokens} instead of {given}",
        ends=codes,
    )
    if os.environ.get("UPDATE_DOCS"):
        _write(fault, mode, line)
    assert once.keys() == {row["cell_id"] for row in rows}
    assert (len(once), lost, from_errors, tokens - given) == (CELLS, 0, 0, 0), line
    assert set(once.values()) == {1}, "a cell ended twice"
    assert all(row["prompt_tokens"] + row["answer_budget"] == 512 for row in rows)
    if fault == "wrong usage":
        assert {row["count_difference"] for row in answered} == {0, 1000}
    else:
        assert {row["count_difference"] for row in answered} == {0}
    assert line in TABLE.read_text().splitlines(), (
        "docs/fault-matrix.md is not current: UPDATE_DOCS=1 pytest tests/engines/hosted"
    )


def _killed_in_between(runs: Runs, peer: Peer) -> str:
    """Killed with requests in flight, then run to the end."""
    peer.hold_after = HELD_AFTER
    process = runs.start()
    _until(lambda: len(runs.rows()) >= HELD_AFTER - CANARIES, process)
    time.sleep(0.02)
    process.kill()
    process.join()
    before = [row for row in runs.rows() if row["outcome"] == "answered"]
    assert 0 < len(before) < CELLS
    asked = len(peer.asked)
    peer.release()
    code = runs.to_end()
    again = {row["expected"][0] for row in before} & set(peer.asked[asked:])
    assert not again, "an answered cell was asked again"
    return f"killed, then {code}"


def _stopped_and_killed(runs: Runs, peer: Peer) -> str:
    """A key that is refused in the middle ends the run with one message; the next run is killed, the last one ends."""
    peer.schedule = {8: "401 in mid-run"}
    first = runs.to_end()
    assert runs.heard().count("refuses the key (401)") == 1
    assert len(peer.asked) <= 8 + MODES["concurrent"], "nothing is sent with a refused key"
    assert first == 4
    peer.schedule = {}
    return f"{first}, {_killed_in_between(runs, peer)}"


def _until(what: Any, process: ForkServerProcess) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert process.is_alive(), f"the run ended by itself: {process.exitcode}"
        assert time.monotonic() < deadline, "the run wrote nothing"
        time.sleep(0.005)


HEAD = """# Faults survived

A server on loopback misbehaves on schedule: among the canaries, before a `kill -9` with requests in flight, and after
the run goes on. Each line was found by `tests/engines/hosted/test_fault_matrix.py`, which fails when this page is not
what it finds. *Ended* counts cells with exactly one answered row; *scored from an error* counts rows whose judgement is
not about what the model said; *tokens* compares the rows with what the server gave.

| fault | requests | what is done | ended | twice | lost | scored from an error | tokens counted once | exit |
|---|---|---|---|---|---|---|---|---|
"""


def _line(fault: str, mode: str, *, cells: str, twice: int, lost: int, from_errors: int, once: str, ends: str) -> str:
    done = DONE.get(fault, "asked again")
    return f"| {fault} | {mode} | {done} | {cells} | {twice} | {lost} | {from_errors} | {once} | {ends} |"


def _write(fault: str, mode: str, line: str) -> None:
    old = TABLE.read_text().splitlines() if TABLE.exists() else []
    known = {tuple(part.strip() for part in text.split("|")[1:3]): text for text in old if text.startswith("| ")}
    known[fault, mode] = line
    order = [(f, m) for f in FAULTS for m in MODES]
    TABLE.write_text(HEAD + "".join(known[key] + "\n" for key in order if key in known))


def test_the_table_has_a_line_for_every_fault() -> None:
    text = TABLE.read_text()
    assert text.startswith(HEAD)
    lines = [tuple(part.strip() for part in line.split("|")[1:3]) for line in text[len(HEAD) :].splitlines()]
    assert lines == [(fault, mode) for fault in FAULTS for mode in MODES]
