"""Fixtures for all tests: no network, few threads, and the embedded model converted once."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.loopback import close_other_sockets

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# test processes share the machine; a run that nobody tells takes all of its cores
os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 2) - 1)))
for _name in [n for n in os.environ if n.startswith("NIAH_") and n != "NIAH_CACHE"]:
    del os.environ[_name]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proof", action="store_true", help="run every proof, not the part of them that runs each time")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow proofs out: all of a test marked ``proof``; of a family marked ``proof(one_in=n)`` all but each nth.

    With ``--proof``, and where a test is named by ``file::test``, nothing is left out.
    """
    if config.getoption("--proof") or any("::" in arg for arg in config.args):
        return
    seen: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        marker = item.get_closest_marker("proof")
        family = item.nodeid.partition("[")[0]
        one_in = marker.kwargs.get("one_in", 0) if marker else 1
        stays = one_in > 0 and seen[family] % one_in == 0
        seen[family] += 1
        (kept if stays else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that leaves this machine is wrong: it fails, instead of hanging or depending on the weather."""
    close_other_sockets(monkeypatch)


@pytest.fixture(autouse=True)
def _own_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plugin files that a test loads are gone with it: a task of a known name would change the ids of later tests."""
    from niah import registry

    monkeypatch.setattr(registry, "_from_files", dict(registry._from_files))
    monkeypatch.setattr(registry, "_digests", dict(registry._digests))
    monkeypatch.setattr(registry, "_paths", dict(registry._paths))


@pytest.fixture(scope="session")
def smollm2_folder() -> Path:
    """SmolLM2-135M as a converted folder; the conversion is part of what is tested."""
    from niah.engines.checkpoint.gguf import converted_folder

    return converted_folder("smollm2")


@pytest.fixture
def niah(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command ``niah`` in this process."""
    from tests.helpers.command import Command

    return Command(monkeypatch, capsys)
