"""docs/architecture.md: the ways that it tells of are those that a run takes, through at most eight files each."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.helpers import ROOT
from tests.helpers.command import Command

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_FILES = 8


def _way(name: str) -> list[str]:
    """Files of a numbered list, in order."""
    steps = PAGE.partition(f"<!-- way: {name} -->\n")[2].partition("\n\n")[0]
    return [match[1] for match in re.finditer(r"^\d+\. `([^`]+)`", steps, re.MULTILINE)]


@contextmanager
def _called() -> Iterator[list[str]]:
    """Files of niah in the order in which their functions are called, imports left out."""
    order: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and "/niah/" in code.co_filename:
            file = code.co_filename[code.co_filename.rindex("/niah/") + 1 :]
            if not order or order[-1] != file:
                order.append(file)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield order
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.mark.parametrize("name", ["setting", "needle"])
def test_a_way_has_few_files_and_none_twice(name: str) -> None:
    way = _way(name)
    assert 1 < len(way) <= MOST_FILES
    assert len(set(way)) == len(way)
    assert all((ROOT / file).is_file() for file in way)


@pytest.mark.model
def test_a_run_takes_both_ways(niah: Command, tmp_path: Path) -> None:
    with _called() as order:
        done = niah(
            *("run", "--kv", "int8", "--no-reference", "--lengths", "512", "--depths", "2"),
            *("--trials", "1", "--out", tmp_path, "--set", "backend.threads=1", "--set", "backend.skip_checks=true"),
        )
    assert done.code == 0, done.err
    for name in ("setting", "needle"):
        at = 0
        for file in _way(name):
            assert file in order[at:], f"{name}: {file} is not called after the files before it"
            at = order.index(file, at) + 1


def test_every_file_named_is_there() -> None:
    for path in re.findall(r"`(niah/[\w./]+)`", PAGE):
        assert (ROOT / path).exists(), path
