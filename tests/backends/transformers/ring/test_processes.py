"""The processes of a ring end for certain, and a rank that dies is an error with a reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from niah.backends.transformers.method import Running, Setting, open_running
from niah.backends.transformers.methods.ring import Ring
from tests.contract.test_methods import _full, fill, ids_of
from tests.helpers import ROOT, tiny_models


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tiny_models.llama().model.save_pretrained(tmp_path)
    return tmp_path


def _children(run: Running) -> list[int]:
    assert isinstance(run, Ring)
    return [child.pid for child in run._group._children]


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_rank_that_dies_is_a_failure_and_the_next_context_starts_a_new_ring(folder: Path) -> None:
    loaded = tiny_models.llama()
    setting = Setting(loaded, _full("ring(2)"), tiny_models.shape_of(loaded), str(folder))
    with torch.inference_mode(), open_running(setting) as run:
        held, expected = fill(run, ids_of(30))
        (first,) = _children(run)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="the ring failed: rank 1"):
            run.prefill(held, ids_of(10), 30)
        assert not _is_there(first)
        _, again = fill(run, ids_of(30))
        (second,) = _children(run)
        assert torch.equal(again, expected)
    for _ in range(50):
        if not _is_there(second):
            break
        time.sleep(0.1)
    assert not _is_there(second), "the end of the setting ends its processes"
    assert not torch.distributed.is_initialized()


def test_a_rank_that_cannot_start_is_told_at_once(tmp_path: Path) -> None:
    loaded = tiny_models.llama()
    setting = Setting(loaded, _full("ring(2)"), tiny_models.shape_of(loaded), str(tmp_path / "nothing"))
    started = time.monotonic()
    with open_running(setting) as run, pytest.raises(RuntimeError, match=r"the ring failed: rank 1: .*nothing"):
        run.cache()
    assert time.monotonic() - started < 60, "not the timeout of the collective"


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc whether a process that is not a child still works")
def test_children_end_when_their_parent_is_killed(folder: Path, tmp_path: Path) -> None:
    """No goodbye at all: the end of the pipe is enough."""
    script = f"""
import time
from tests.helpers import tiny_models
from tests.contract.test_methods import _full
from niah.backends.transformers.method import Setting, open_running
loaded = tiny_models.llama()
with open_running(Setting(loaded, _full("ring(2)"), tiny_models.shape_of(loaded), {str(folder)!r})) as run:
    run.cache()
    print(run._group._children[0].pid, flush=True)
    time.sleep(120)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert _is_there(child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(100):
        if not _is_running(child):
            break
        time.sleep(0.1)
    assert not _is_running(child)


def _is_running(pid: int) -> bool:
    """Whether a process that is not our child still works: an ended one may wait for its new parent to notice."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
