"""Runs that are killed or interrupted: nothing is lost, nothing is asked twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import niah as package
from niah.store.folder import RunFolder
from niah.store.read import read_rows

CELLS = 2 * 5 * 6


def _command(out: Path, delay_s: float) -> list[str]:
    return [
        *(sys.executable, "-m", "niah", "run", "--backend", "fake", "--kv", "bf16,int8", "--lengths", "512"),
        *("--depths", "5", "--trials", "6", "--out", str(out), "--set", f"backend.delay_s={delay_s}"),
    ]


def _started(out: Path, rows: int, delay_s: float = 0.4) -> subprocess.Popen[str]:
    """A run that has written some rows and is still going on."""
    process = subprocess.Popen(_command(out, delay_s), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        written = sum(f.read_bytes().count(b"\n") for f in out.glob("*/rows.jsonl"))
        if written >= rows:
            return process
        if process.poll() is not None:
            pytest.fail(f"the run ended by itself: {process.communicate()}")
        time.sleep(0.02)
    process.kill()
    pytest.fail("the run wrote nothing")


def _all_rows(out: Path) -> list[str]:
    (folder,) = out.iterdir()
    return [row.cell_id for row in read_rows(RunFolder(folder)).rows]


def test_kill_and_run_again(tmp_path: Path) -> None:
    process = _started(tmp_path, rows=7)
    process.kill()
    process.communicate()
    before = _all_rows(tmp_path)
    assert 0 < len(before) < CELLS
    with next(tmp_path.glob("*/rows.jsonl")).open("ab") as file:
        file.write(b'{"schema": 1, "cell_id": "torn')  # what a kill in the middle of a write leaves
    again = subprocess.run(_command(tmp_path, 0), capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert f"{len(before)} done, 0 failed and asked again, {CELLS - len(before)} new" in again.stderr
    after = _all_rows(tmp_path)
    assert after[: len(before)] == before
    assert set(Counter(after).values()) == {1}, "an answered cell was asked again"
    assert len(after) == CELLS
    assert package.load(tmp_path).manifest["status"] == "finished"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_saves_and_says_how_to_go_on(tmp_path: Path, sent: signal.Signals) -> None:
    process = _started(tmp_path, rows=1)
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with: niah run --backend fake" in err
    assert "Traceback" not in err
    record = package.load(tmp_path)
    assert record.manifest["status"] == "interrupted"
    assert 0 < len(record.rows) < CELLS
    assert (record.path / "report.html").is_file()


def test_second_interrupt_stops_at_once(tmp_path: Path) -> None:
    process = _started_slow(tmp_path)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=15)
    assert process.returncode == 130
    assert time.monotonic() - started < 10


def _started_slow(out: Path) -> subprocess.Popen[str]:
    """A run whose first group takes longer than the test."""
    process = subprocess.Popen(_command(out, 30), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(out.glob("*/run.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    return process


def test_two_processes_cannot_write_one_run(tmp_path: Path) -> None:
    process = _started(tmp_path, rows=1)
    second = subprocess.run(_command(tmp_path, 0.4), capture_output=True, text=True, check=False)
    process.kill()
    process.communicate()
    assert second.returncode == 6
    assert "Traceback" not in second.stderr
