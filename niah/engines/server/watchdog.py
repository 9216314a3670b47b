"""Runs a command and ends its whole process group when stdin closes: run as a file, standard library only.

The pipe on stdin closes however its other end goes, by ``kill -9`` too, and on every system that has process groups.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

# seconds that the group has between SIGTERM and SIGKILL
GRACE_S = 6.0
_POLL_S = 0.1


def _ignore(_signal: int, _frame: object) -> None:
    """A handler and not SIG_IGN, which the command would inherit."""


def watch(command: Sequence[str]) -> None:
    """Run the command until it ends or stdin closes, then end the group, this process included.

    This process must lead a process group of its own.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _ignore)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603  the caller's own argument list
    while child.poll() is None:
        readable, _, _ = select.select([sys.stdin.fileno()], [], [], _POLL_S)
        if readable and not os.read(sys.stdin.fileno(), 1):
            break
    group = os.getpgrp()
    os.killpg(group, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    # what the command has started may outlive it; nothing that matters is written at that point
    os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    watch(sys.argv[1:])
