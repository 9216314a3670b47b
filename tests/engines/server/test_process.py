"""Child processes: what they are told, what they say, and that nothing of them is left."""

from __future__ import annotations

import json
import os
import sys
import time

import pytest

from niah.engines.server.process import LineProcess, ServerProcess

ECHO = """
import json, sys
for line in sys.stdin:
    value = json.loads(line)
    if value == {"end": True}:
        print("the last line", file=sys.stderr)
        sys.exit(3)
    print(json.dumps([value]), flush=True)
"""
# a command that heeds neither its standard input nor SIGTERM, and has a child of its own
DEAF = """
import json, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(json.dumps(f"CHILD {child.pid}"), flush=True)
time.sleep(600)
"""


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_lines_go_there_and_back() -> None:
    process = LineProcess([sys.executable, "-c", ECHO], "test", grace_s=20)
    process.send({"n": 1})
    assert process.receive() == [{"n": 1}]
    log = process.log
    started = time.monotonic()
    process.stop()
    assert time.monotonic() - started < 15, "it ends by itself, as its standard input does"
    assert not process.is_running
    assert not log.exists()
    process.stop()


def test_one_that_has_ended_says_so() -> None:
    process = LineProcess([sys.executable, "-c", ECHO], "test", grace_s=20)
    process.send({"end": True})
    with pytest.raises(RuntimeError, match="has ended"):
        process.receive()
    assert process.ended_within(20) == 3
    assert process.last_lines(1) == ["the last line"]
    process.stop(keep_log=True)
    assert process.log.read_text() == "the last line\n"


@pytest.mark.parametrize("is_server", [False, True])
def test_a_deaf_command_is_ended_with_all_that_it_started(is_server: bool) -> None:
    command = [sys.executable, "-c", DEAF]
    if is_server:
        process: LineProcess | ServerProcess = ServerProcess(command, dict(os.environ), "test")
        said = ""
        while not said.endswith("\n"):
            said = process.log.read_text()
            time.sleep(0.05)
        child = int(json.loads(said).split()[1])
    else:
        process = LineProcess(command, "test", grace_s=0.2)
        child = int(process.receive().split()[1])
    assert _is_there(child)
    process.stop()
    deadline = time.monotonic() + 10
    while _is_there(child) and _is_running(child):
        assert time.monotonic() < deadline, "a child of the command is left"
        time.sleep(0.05)


def _is_running(pid: int) -> bool:
    """An ended process that is not ours may wait for its new parent to notice."""
    try:
        with open(f"/proc/{pid}/status") as file:  # noqa: PTH123
            return "\nState:\tZ" not in file.read()
    except FileNotFoundError:
        return sys.platform != "linux"
