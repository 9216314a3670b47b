"""``run.json``: on disk after every change, whole at any moment, and kept by the next run of the folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from niah.errors import StoreError
from niah.runner.budget import Spending
from niah.runner.canary import CanaryResult
from niah.runner.manifest import Manifest
from niah.runner.plan import Plan
from niah.store.folder import RunFolder
from tests.helpers.scripted import ScriptedRun, planned

BROKEN = CanaryResult("broken", 0, 4, "0 of 4")
PASSED = CanaryResult("passed", 4, 4, "4 of 4", (True,) * 4)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planned(kv=["bf16", "int8"], trials=1)


@pytest.fixture
def folder(plan: Plan, tmp_path: Path) -> Iterator[RunFolder]:
    with ScriptedRun(plan, tmp_path).opened() as folder:
        yield folder


def _on_disk(folder: RunFolder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder.path / "run.json").read_text())
    return found


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (lambda m: m.start(), lambda d: d["status"] == "running"),
        (lambda m: m.finish("budget", why="9 t"), lambda d: (d["status"], d["stopped_by"]) == ("budget", "9 t")),
        (lambda m: m.canary("int8", BROKEN), lambda d: d["settings"]["int8"]["broken"] is True),
        (lambda m: m.effective("int8", {"a": 1}), lambda d: d["settings"]["int8"]["effective"] == {"a": 1}),
        (lambda m: m.reuse_check("bf16", {"cells": 3}), lambda d: d["reuse_check"] == {"bf16": {"cells": 3}}),
        (lambda m: m.adaptive({"first": 6}), lambda d: d["adaptive"] == {"first": 6}),
        (lambda m: m.choose_difficulty({"tokens": 9, "cost_usd": 1.0}), lambda d: d["spent"]["beside_tokens"] == 9),
    ],
)
def test_every_change_is_on_disk_at_once(
    plan: Plan, folder: RunFolder, change: Callable[[Manifest], None], shown: Callable[[dict[str, Any]], bool]
) -> None:
    change(Manifest(plan, folder, "niah run", "0"))
    assert shown(_on_disk(folder))


def test_a_crash_while_it_is_written_leaves_the_last_one(
    plan: Plan, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = Manifest(plan, folder, "niah run", "0")
    manifest.canary("bf16", PASSED)
    before = (folder.path / "run.json").read_bytes()

    def full(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(StoreError):
            manifest.canary("int8", BROKEN)
    assert (folder.path / "run.json").read_bytes() == before
    assert [path.name for path in folder.path.iterdir() if path.suffix == ".tmp"] == []
    after = Manifest(plan, folder, "niah run", "0")
    assert after.settled_canary("bf16")
    assert not after.settled_canary("int8")


def test_the_next_run_of_a_folder_keeps_what_was_recorded(plan: Plan, folder: RunFolder) -> None:
    first = Manifest(plan, folder, "niah run", "0")
    first.start()
    first.canary("bf16", PASSED)
    first.canary("int8", BROKEN)
    first.effective("bf16", {"dtype": "bfloat16"})
    spending = Spending(plan, None, tokens=50, beside_tokens=40)
    first.finish("interrupted", spending)
    started = _on_disk(folder)["started_at"]
    again = Manifest(plan, folder, "niah run --kv int8", "1")
    again.start()
    data = _on_disk(folder)
    assert (data["started_at"], data["status"], data["finished_at"]) == (started, "running", None)
    assert data["command"] == "niah run --kv int8"
    assert data["settings"]["bf16"]["effective"] == {"dtype": "bfloat16"}
    assert again.spent_beside() == (0.0, 40)
    assert again.settled_canary("bf16")
    assert not again.settled_canary("int8"), "a broken canary is asked again"
    assert again.broken() == ["int8"]
    assert again.reference_canary() == PASSED


def test_it_holds_what_rebuilding_and_reading_the_run_need(plan: Plan, folder: RunFolder) -> None:
    Manifest(plan, folder, "niah run --set backend.api_key=sk-0123456789abcdefghij", "0").start()
    data = _on_disk(folder)
    assert [data["settings"][kv.name]["asked"]["name"] for kv in plan.kvs] == ["bf16", "int8"]
    assert data["plan"]["cells"] == plan.cell_count == 4
    pairs = {cell.pair_id: cell.case.question for group in plan.groups for cell in plan.cells(plan.kvs[1], group)}
    assert data["questions"] == pairs, "a question is known by its pair, whatever the setting"
    assert "0123456789abcdefghij" not in json.dumps(data)
