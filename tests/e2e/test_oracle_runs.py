"""Whole runs on the oracle, whose heatmap is known in advance, and on the scripted backend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import niah as package
from niah.store.read import newest, read_rows
from niah.store.schema import Row
from niah.types import Answer, Prompt
from tests.helpers.command import Command
from tests.helpers.known import known


def _rows(out: Path) -> list[Row]:
    record = package.load(out)
    return list(record.rows)


def test_sinks_and_window_decide_every_cell(niah: Command, tmp_path: Path) -> None:
    said = niah(
        *("run", "--backend", "oracle", "--set", "backend.window=512", "--set", "backend.sinks=4", "--lengths", "2k"),
        *("--depths", "21", "--out", tmp_path, "--json"),
    )
    assert said.code == 0
    document = said.document()
    assert document["cells"] == document["answered"] == 42
    record = package.load(tmp_path)
    seen = {True: 0, False: 0}
    for row in record.rows:
        placed = _placement(niah, record.path, row)
        inside = placed["token_offset"] >= known(row.prompt_tokens) - 512
        assert row.correct == inside, (row.depth, placed)
        seen[inside] += 1
    assert all(seen.values()), "a window that shows all or nothing proves nothing"


def _placement(niah: Command, path: Path, row: Row) -> dict[str, float]:
    document = niah("cell", path, row.cell_id, "--prompt", "--json").document()
    assert document["matches"] is True
    assert document["prompt"].count(row.expected[0]) == 1
    key = next(p for p in document["placements"] if p["asked"] and abs(p["depth"] - row.depth) < 1e-9)
    assert key["depth_real"] == pytest.approx(row.depth_real)
    return key


def test_a_known_loss_is_measured(niah: Command, tmp_path: Path) -> None:
    said = niah(
        *("run", "-b", "oracle", "--kv", "bf16,int8,int4", "--set", "backend.loss={int4: 0.3}", "--lengths", "1k"),
        *("--depths", "11", "--trials", "40", "--out", tmp_path, "--json"),
    )
    accuracy = {s["kv"]: s["accuracy"] for s in said.document()["settings"]}
    assert accuracy["bf16"] == accuracy["int8"] == 1.0
    assert accuracy["int4"] == pytest.approx(0.7, abs=0.07)


def test_every_row_adds_up_and_pairs_join(niah: Command, tmp_path: Path) -> None:
    niah("run", "-b", "oracle", "--kv", "bf16,int8", "-l", "512,1k", "-d", "5", "--out", tmp_path)
    rows = _rows(tmp_path)
    assert len(rows) == 40
    for row in rows:
        assert known(row.prompt_tokens) + known(row.answer_budget) == row.length
        assert row.engine_prompt_tokens == row.prompt_tokens
    by_kv = {kv: {r.pair_id: r.prompt_sha256 for r in rows if r.kv == kv} for kv in ("bf16", "int8")}
    assert by_kv["bf16"] == by_kv["int8"], "every setting must see the same tokens"
    assert len({r.cell_id for r in rows}) == 40


def test_same_command_costs_nothing_and_changes_make_new_cells(niah: Command, tmp_path: Path) -> None:
    command = ("run", "-b", "oracle", "-l", "512", "-d", "3", "--out", tmp_path)
    niah(*command)
    first = package.load(tmp_path)
    before = (first.path / "rows.jsonl").read_bytes()
    said = niah(*command)
    assert "6 done, 0 failed and asked again, 0 new" in said.err
    assert (first.path / "rows.jsonl").read_bytes() == before
    niah(*command, "--seed", "1")
    other = {row.cell_id for run in tmp_path.iterdir() for row in package.load(run).rows}
    assert len(other) == 12


def test_failures_are_asked_again_and_never_scored(niah: Command, tmp_path: Path) -> None:
    command = ("run", "-b", "fake", "-l", "512", "-d", "5", "--out", tmp_path, "--json")
    said = niah(*command, "--set", "backend.fail_every=3")
    document = said.document()
    assert said.code == document["exit"] == 3
    assert document["failed"] > 0
    assert document["failed"] + document["answered"] == 10
    failed = [row for row in _rows(tmp_path) if row.outcome == "failed"]
    assert all(row.correct is None and row.score is None and row.error_kind == "scripted" for row in failed)
    assert document["settings"][0]["accuracy"] == 1.0, "a failure must not lower the accuracy"
    again = niah(*command)
    assert again.code == 0
    assert f"{10 - len(failed)} done, {len(failed)} failed and asked again, 0 new" in again.err
    rows = _rows(tmp_path)
    assert [row.outcome for row in rows] == ["answered"] * 10
    assert {row.attempt for row in rows} == {1, 2}


def test_a_broken_setting_is_marked_and_not_called_a_loss(niah: Command, tmp_path: Path) -> None:
    said = niah(
        *("run", "-b", "fake", "--kv", "bf16,int8", "--set", "backend.break_kv=[int8]", "-l", "512", "-d", "3"),
        *("--out", tmp_path, "--json"),
    )
    assert said.code == 3
    broken = {s["kv"]: s["broken"] for s in said.document()["settings"]}
    assert broken == {"bf16": False, "int8": True}
    assert "broken: int8" in said.err
    record = package.load(tmp_path)
    assert record.setting("int8")["canary"]["state"] == "broken"
    shown = niah("show", record.path)
    assert "BROKEN" in shown.out


def test_echo_is_not_retrieval(niah: Command, tmp_path: Path) -> None:
    niah("run", "-b", "fake", "--set", "backend.reply=echo", "-l", "512", "-d", "3", "--out", tmp_path)
    assert not any(row.correct for row in _rows(tmp_path))


def test_torn_and_edited_lines(niah: Command, tmp_path: Path) -> None:
    command = ("run", "-b", "oracle", "-l", "512", "-d", "5", "--out", tmp_path)
    niah(*command)
    file = package.load(tmp_path).path / "rows.jsonl"
    lines = file.read_text().splitlines()
    lines[3] = lines[3].replace('"outcome"', '"outcom')
    file.write_text("\n".join(lines[:9]) + "\n" + lines[9][:40])
    said = niah(*command)
    assert said.code == 0
    assert "line 4 cannot be read" in said.err
    record = package.load(tmp_path)
    assert len(record.rows) == 10
    assert {row.outcome for row in record.rows} == {"answered"}


def test_time_limit_stops_cleanly(niah: Command, tmp_path: Path) -> None:
    command = ("run", "-b", "fake", "-l", "512", "-d", "2", "-n", "30", "--out", tmp_path)
    said = niah(*command, "--set", "backend.delay_s=0.2", "--max-minutes", "0.02", "--json")
    assert said.code == 5
    document = said.document()
    assert 0 < document["answered"] < 60
    assert document["skipped"] == 60 - document["answered"]
    assert niah(*command).code == 0
    assert len(_rows(tmp_path)) == 60


def test_a_single_needle_shares_what_is_before_it(niah: Command, tmp_path: Path) -> None:
    niah("run", "-b", "oracle", "--task", "single", "-l", "512", "-d", "5", "-n", "1", "--out", tmp_path)
    rows = _rows(tmp_path)
    assert len(rows) == 5
    assert all(row.correct for row in rows)
    lines = (package.load(tmp_path).path / "rows.jsonl").read_text().splitlines()
    order = [json.loads(line)["depth"] for line in lines]
    assert order == sorted(order, reverse=True), "deepest first, so that each next context keeps the longest prefix"


def test_more_depths_than_keys_go_to_further_contexts(niah: Command, tmp_path: Path) -> None:
    niah("run", "-b", "oracle", "--set", "task.keys=4", "-l", "1k", "-d", "11", "-n", "1", "--out", tmp_path)
    record = package.load(tmp_path)
    assert len(record.rows) == 11
    needles = {len(niah("cell", record.path, r.cell_id, "--json").document()["placements"]) for r in record.rows}
    assert needles == {4}


def test_python_interface(tmp_path: Path) -> None:
    run = package.run(backend="oracle", lengths="512", depths=3, kv="bf16,int8", out=str(tmp_path))
    frame = run.frame()
    assert len(frame) == 12
    assert {"kv", "length", "depth", "correct", "kv_memory_logical_bytes"} <= set(frame.columns)
    assert run.heatmap("int8").get_title()
    assert newest(read_rows_of(run.path)).keys() == {row.cell_id for row in run.rows}


def read_rows_of(path: Path) -> list[Row]:
    from niah.store.folder import RunFolder

    return list(read_rows(RunFolder(path)).rows)


def test_an_engine_that_cannot_be_opened_leaves_a_failed_run(
    niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from niah import registry
    from niah.errors import BackendUnavailable

    plugin = registry.load("backends", "fake")

    class Refusing:
        async def __aenter__(self) -> None:
            raise BackendUnavailable("no device here")

        async def __aexit__(self, *_: object) -> None: ...

    monkeypatch.setattr("niah.backends.fake.PLUGIN", replace(plugin, open=lambda *_: Refusing()))
    said = niah("run", "-b", "fake", "-l", "512", "-d", "2", "--out", tmp_path)
    assert said.code == 4
    assert "no device here" in said.err
    assert package.load(tmp_path).manifest["status"] == "failed"


def test_run_inside_a_running_loop(tmp_path: Path) -> None:
    """As in a notebook."""
    import asyncio

    async def cell() -> int:
        return len(package.run(backend="oracle", lengths="512", depths=2, trials=1, out=str(tmp_path)).rows)

    assert asyncio.run(cell()) == 2


def test_order_of_settings_does_not_make_a_new_run(niah: Command, tmp_path: Path) -> None:
    for kv in ("int8,int4", "int4,int8"):
        niah("run", "-b", "oracle", "--kv", kv, "-l", "512", "-d", "2", "--out", tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_plugin_file_is_part_of_the_identity_and_of_the_record(niah: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    source = (
        "from dataclasses import replace\nfrom niah.tasks.passkey import PLUGIN as ORIGINAL\n"
        "PLUGIN = replace(ORIGINAL, name='mine')\nKIND = 'tasks'\n"
    )
    path.write_text(source)
    out = tmp_path / "out"
    command = ("run", "-b", "oracle", "--plugin", path, "-t", "mine", "-l", "512", "-d", "2", "--out", out)
    assert niah(*command).code == 0
    row = package.load(out).rows[0]
    assert niah("cell", out, row.cell_id, "--json").document()["matches"] is True
    path.write_text(source + "# edited\n")
    assert niah(*command).code == 0
    assert len(list(out.iterdir())) == 2


def test_truncated_replies_are_not_all_answered(niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from niah.backends import fake

    def cut_off(session: Any, prompt: Prompt) -> Answer:
        reply = answer(session, prompt)
        assert isinstance(reply, Answer)
        return replace(reply, text=" well, the", stop="length")

    answer = fake._FakeSession._reply
    monkeypatch.setattr(fake._FakeSession, "_reply", cut_off)
    said = niah("run", "-b", "fake", "-l", "512", "-d", "2", "-n", "1", "--out", tmp_path, "--json")
    assert said.code == 3
    document = said.document()
    assert (document["answered"], document["truncated"]) == (0, 2)
    assert document["settings"][0]["accuracy_of_asked"] == 0
    assert "cut off by the answer budget" in said.err
