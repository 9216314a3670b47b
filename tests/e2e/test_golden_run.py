"""Runs kept from an earlier release: they are read, shown, compared and gone on with, and no id of theirs changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import niah as package
from niah.grid import identity
from niah.kv.grammar import parse_one
from niah.kv.identity import canonical
from tests.helpers import ROOT
from tests.helpers.command import Command

GOLDEN = ROOT / "tests" / "golden"
KEPT = json.loads((GOLDEN / "kv_ids.json").read_text(encoding="utf-8"))
ORACLE_KV = (
    "bf16,int8,int4,kivi4,gqa(1)+int8+skip(0,-1),k8v4+window(256),streaming(sinks=4,window=256),int8+paged(16),tq-k8v4"
)
TRANSFORMERS_KV = "bf16,int8,kivi4,k8v4+skip(0,-1),streaming(window=256),window(256)"
COMMANDS = {
    "oracle": ("--backend", "oracle", "--kv", ORACLE_KV, "--lengths", "512,1k", "--depths", "3", "--trials", "2"),
    "transformers": (
        *("--backend", "transformers", "--set", "backend.dtype=fp32", "--kv", TRANSFORMERS_KV),
        *("--lengths", "512", "--depths", "3", "--trials", "1"),
    ),
}


def _copy(backend: str, to: Path) -> Path:
    """The kept run in a folder of its own; a finished run may not be written to."""
    (kept,) = (GOLDEN / backend).iterdir()
    shutil.copytree(kept, to / kept.name)
    return to / kept.name


@pytest.mark.parametrize("text", sorted(KEPT["settings"]))
def test_a_setting_keeps_its_name_and_its_identity(text: str) -> None:
    setting, kept = parse_one(text, "bf16"), KEPT["settings"][text]
    assert setting.name == kept["name"]
    assert canonical(setting) == {**KEPT["plain"], **kept["differs"], "name": kept["name"]}
    assert identity(canonical(setting)) == kept["id"]


@pytest.mark.parametrize("backend", sorted(COMMANDS))
def test_it_is_read_shown_and_compared(backend: str, tmp_path: Path, niah: Command) -> None:
    folder = _copy(backend, tmp_path)
    record = package.load(folder)
    assert len(record.rows) == len((folder / "rows.jsonl").read_text(encoding="utf-8").splitlines())
    shown = niah("show", folder)
    compared = niah("compare", folder)
    assert (shown.code, compared.code) == (0, 0), shown.err + compared.err
    for kv in {row.kv for row in record.rows}:
        assert kv[:8] in shown.out
        assert kv[:8] in compared.out


@pytest.mark.parametrize("backend", ["oracle", pytest.param("transformers", marks=pytest.mark.model)])
def test_it_goes_on_where_it_was_cut_off(backend: str, tmp_path: Path, niah: Command) -> None:
    """The last third is gone: the same command finds the folder by its identity and asks those cells alone."""
    folder = _copy(backend, tmp_path)
    lines = (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    left = len(lines) * 2 // 3
    (folder / "rows.jsonl").write_text("".join(lines[:left]), encoding="utf-8")
    done = niah("run", *COMMANDS[backend], "--out", tmp_path)
    assert done.code == 0, done.err
    assert f"{left} done, 0 failed and asked again, {len(lines) - left} new" in done.err
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    again = {row["cell_id"]: row for row in map(json.loads, (folder / "rows.jsonl").read_text("utf-8").splitlines())}
    assert len(again) == len(lines)
    for line in lines:
        old = json.loads(line)
        new = again[old["cell_id"]]
        for name in (
            "pair_id",
            "prompt_sha256",
            "kv",
            "kv_memory",
            "length",
            "depth",
            "trial",
            "answer",
            "correct",
            "outcome",
        ):
            assert new[name] == old[name], name
