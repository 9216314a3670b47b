"""What a terminal gets: nothing that steers it, and only characters that its encoding has."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import niah as package
from niah import api
from niah.cli.app import main
from niah.redact import printable

ODD = "\x1b[31mred\x1b]0;title\x07\x00\x9b2J\u202eright\u200f\ud800 \x7f\r\n ok"
SHOWN = r"\x1b[31mred\x1b]0;title\x07\x00\x9b2J\u202eright\u200f\ud800 \x7f\r\n ok"
STEERING = "\x1b\x07\x00\x9b\u202e\u200f\ud800\x7f\r"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, whose answers and messages are then what a hostile model says."""
    out = tmp_path_factory.mktemp("made")
    asked: dict[str, Any] = {"backend": "fake", "kv": ["int8"], "lengths": "512", "depths": "0,50,100", "trials": 2}
    run = package.run(**asked, out=str(out))
    rows = [json.loads(line) for line in (run.path / "rows.jsonl").read_text().splitlines()]
    for row in rows:
        row |= {"answer": ODD, "why": ODD, "reasoning": ODD, "stop": ODD, "model": ODD}
    rows[-1] |= {"outcome": "failed", "error": f"engine: {ODD}", "correct": None, "score": None}
    (run.path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    manifest = json.loads((run.path / "run.json").read_text())
    manifest |= {"status": ODD, "command": ODD, "stopped_by": ODD}
    manifest["settings"]["int8"] |= {"effective": {ODD: ODD}, "canary": {"state": "broken", "why": ODD}, "broken": True}
    (run.path / "run.json").write_text(json.dumps(manifest))
    return run.path


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(api, "write_figures", lambda *_: [])
    copy = tmp_path / "results" / made.name
    shutil.copytree(made, copy)
    return copy


def reading(folder: Path, tmp_path: Path) -> dict[str, tuple[Any, ...]]:
    cell = json.loads((folder / "rows.jsonl").read_text().splitlines()[0])["cell_id"]
    return {
        "show": ("show", folder),
        "list runs": ("list", "runs", "-o", folder.parent),
        "cell": ("cell", folder, cell),
        "cell prompt": ("cell", folder, cell, "--prompt"),
        "cell json": ("cell", folder, cell, "--json"),
        "compare": ("compare", folder),
        "compare markdown": ("compare", folder, "--markdown"),
        "report": ("report", folder),
        "rescore": ("rescore", folder),
        "export": ("export", folder, "--to", "markdown", "-o", tmp_path / "table.md"),
        "wrong cell": ("cell", folder, ODD.replace("\0", "").replace("\ud800", "")),
    }


def others(tmp_path: Path) -> dict[str, tuple[Any, ...]]:
    run = ("-b", "fake", "--lengths", "512", "--depths", "2", "--trials", "1", "--kv", "int8")
    (tmp_path / "odd.yaml").write_text("lengths: 1k\nlengths: 2k\n")
    return {
        "help": ("--help",),
        "run help": ("run", "--help"),
        "version": ("--version",),
        "plan": ("plan", *run),
        "run": ("run", *run, "-o", tmp_path / "out"),
        "run shard": ("run", *run, "--trials", "2", "-o", tmp_path / "shards", "--shard", "1/2"),
        "merge": ("merge", tmp_path / "shards"),
        "list kv": ("list", "haystacks"),
        "doctor": ("doctor",),
        "memory": ("memory", "smollm2"),
        "init": ("init", tmp_path / "niah.yaml"),
        "schema": ("schema", "config"),
        "error": ("plan", tmp_path / "odd.yaml"),
        "no view": ("view", tmp_path / "nowhere"),
    }


def test_answers_are_shown_and_steer_nothing(niah: Any, folder: Path, tmp_path: Path) -> None:
    for name, command in reading(folder, tmp_path).items():
        said = niah(*command)
        assert "Traceback" not in said.err, name
        found = [char for char in STEERING if char in said.out + said.err and not (char == "\x7f" and "json" in name)]
        assert not found, (name, found)
    said = niah(*reading(folder, tmp_path)["cell"])
    assert said.code == 0
    assert f"▶{SHOWN}◀" in said.out


def test_an_escape_for_every_character_that_is_not_seen() -> None:
    assert printable(ODD) == SHOWN
    assert printable("naïve 東京 e\u0301 \u3000\u00a0 x") == "naïve 東京 e\u0301 \u3000\u00a0 x"
    assert printable("a\tb\nc\r", lines=True) == "a\tb\nc\\r"
    assert printable("\u2066\u2069\u2028\u200b\ufeff") == r"\u2066\u2069\u2028\u200b\ufeff"


class Redirected:
    """Standard output and error as a file of some encoding has them."""

    def __init__(self, patch: pytest.MonkeyPatch, encoding: str) -> None:
        self.raw = [io.BytesIO(), io.BytesIO()]
        out, err = (io.TextIOWrapper(raw, encoding=encoding, errors="strict") for raw in self.raw)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        self._streams = (out, err)

    def text(self, encoding: str) -> str:
        for stream in self._streams:
            stream.flush()
        # where a stream calls itself ASCII, click writes UTF-8
        codec = "utf-8" if encoding == "ascii" else encoding
        return "".join(raw.getvalue().decode(codec) for raw in self.raw)


@pytest.fixture
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.usefixtures("_narrow")
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "ascii"])
def test_every_command_in_an_encoding_that_lacks_characters(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    commands = reading(folder, tmp_path) | (others(tmp_path) if encoding == "cp1252" else {})
    for name, command in commands.items():
        with monkeypatch.context() as patch:
            redirected = Redirected(patch, encoding)
            patch.setattr(sys, "argv", ["niah", *map(str, command)])
            try:
                main()
                code: object = 0
            except SystemExit as end:
                code = end.code
            said = redirected.text(encoding)
        assert code in (0, 2, 3, 6, None), (name, code, said[-500:])
        assert "Traceback" not in said, name
        assert "UnicodeEncodeError" not in said, name
        assert said or name == "export", name


def test_every_command_is_among_them(folder: Path, tmp_path: Path) -> None:
    from niah.cli.app import app

    run = {command[0] for command in (reading(folder, tmp_path) | others(tmp_path)).values()}
    assert {command.name for command in app.registered_commands} <= run


FORMULAS = ["=1+1", " =cmd|' /C calc'!A0", "\t=1", "\r=1", "\n=1", "+1", "-1", "@SUM(A1)", "\u00a0=1", "\u200b=1",
            "\0=1", "\u3000=1", "\uff1d1", " \x1b@x"]  # fmt: skip


def test_a_spreadsheet_gets_no_formula(niah: Any, folder: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    made = [rows[0] | {"cell_id": f"c{i}", "answer": text, "why": text} for i, text in enumerate(FORMULAS)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    assert niah("export", folder, "--to", "csv", "-o", tmp_path / "cells.csv").code == 0
    data = (tmp_path / "cells.csv").read_bytes()
    assert b"\0" not in data
    lines = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    assert [line["answer"] for line in lines] == ["'" + text.replace("\0", "") for text in FORMULAS]
    assert niah("export", folder, "--to", "junit", "-o", tmp_path / "cells.xml").code == 0
    assert len(list(ET.parse(tmp_path / "cells.xml").iter("testcase"))) == len(FORMULAS)


@pytest.mark.parametrize("field", ["length", "prompt_tokens", "trial", "attempt", "engine_prompt_tokens", "kv_memory"])
@pytest.mark.parametrize("value", [10**30, 2**63, "9" * 400], ids=["1e30", "2**63", "text"])
def test_a_number_beyond_64_bits_is_a_bad_line(niah: Any, folder: Path, tmp_path: Path, field: str, value: Any) -> None:
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    odd = {"kv_memory": rows[0]["kv_memory"] | {"tokens": value}} if field == "kv_memory" else {field: value}
    rows[0] |= odd
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    record = package.load(folder)
    assert record.bad_lines == (1,)
    assert len(record.rows) == len(rows) - 1
    said = niah("report", folder)
    assert said.code == 0, said.err
    assert (folder / "rows.parquet").is_file()
    assert "Lines of rows.jsonl that are no rows are left out: 1." in (folder / "report.html").read_text()
    assert "1 lines cannot be read" in niah("show", folder).err


WRONG = [None, 7, True, "x", [[1]], {"a": {"b": [1]}}]
KEYS = (
    "schema", "niah", "asked", "reference", "shard", "model", "haystack", "tokenizer", "rebuild", "prices", "hardware",
    "versions", "questions", "plan", "command", "settings", "started_at", "finished_at", "status", "stopped_by",
    "spent", "asked.config", "asked.kv", "asked.lengths", "asked.depths", "asked.config.backend", "asked.config.grid",
    "asked.config.plugins", "asked.config.kv", "asked.config.grid.lengths", "model.name", "model.shape", "plan.cells",
    "settings.int8", "settings.int8.asked", "settings.int8.effective", "settings.int8.canary", "settings.int8.broken",
    "rebuild.template", "rebuild.template.prefix", "rebuild.numerics", "rebuild.headroom", "tokenizer.digest",
)  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_manifest_of_wrong_types_is_one_sentence(niah: Any, folder: Path, tmp_path: Path, key: str) -> None:
    """Each key in turn, each wrong value: most are refused where the run is loaded, none ends in a trace."""
    original = json.loads((folder / "run.json").read_text())
    cell = json.loads((folder / "rows.jsonl").read_text().splitlines()[0])["cell_id"]
    for value in WRONG:
        manifest = json.loads(json.dumps(original))
        place = manifest
        *path, last = key.split(".")
        for part in path:
            place = place[part]
        place[last] = value
        (folder / "run.json").write_text(json.dumps(manifest))
        for command in (
            ("show", folder),
            ("cell", folder, cell),
            ("compare", folder),
            ("list", "runs", "-o", folder.parent),
        ):
            said = niah(*command)
            assert said.code in (0, 2, 6), (value, command[0], said.err)
            assert "Traceback" not in said.err
            assert len(said.err.strip().splitlines()) <= 2, said.err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 200 + "1" + "}" * 200, "nested too deeply"),
        ('{"plan": {"cells": 1' + "0" * 30 + "}}", "beyond 64 bits"),
        ('{"plan": {"cells": 1' + "0" * 6000 + "}}", "beyond 64 bits"),
        ('{"plan": {"cells": NaN}}', "NaN is not JSON"),
        ('{"plan": {"cells": 1e999}}', "too large"),
        ("[]", "no JSON object"),
        ("\ufeff{}", "cannot be read"),
        ('{"settings": [1]}', "'settings' holds list where an object belongs"),
        ('{"reference": 7}', "'reference' holds int where a text belongs"),
        ('{"questions": {"a": 1}}', "'questions.a' holds int where a text belongs"),
    ],
)
def test_a_manifest_that_is_none(niah: Any, folder: Path, tmp_path: Path, text: str, reason: str) -> None:
    (folder / "run.json").write_text(text)
    alone = [(name, folder) for name in ("show", "report", "rescore", "compare", "merge")]
    for command in (*alone, ("cell", folder, "1"), ("export", folder, "--to", "csv", "-o", tmp_path / "x")):
        said = niah(*command)
        assert said.code == 6, (command[0], said.err)
        assert reason in said.err
        assert len(said.err.strip().splitlines()) == 1
    assert niah("list", "runs", "-o", folder.parent).code == 0


NAME = "int8\nniah: all is well\x1b[2J|<img src=x>@all\ud800"


def test_a_settings_name_makes_no_lines_and_no_markup(niah: Any, made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(made, folder)
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row | {"kv": NAME}) + "\n" for row in rows))
    manifest = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(manifest | {"settings": {NAME: {}}, "reference": None}))
    said = niah("show", folder)
    assert said.code == 0
    assert not any(line.startswith("niah: all is well") for line in said.out.splitlines())
    assert r"int8\nniah: all is well\x1b[2J" in said.out
    written = tmp_path / "cells.md"
    assert niah("export", folder, "--to", "markdown", "-o", written).code == 0
    text = written.read_text(encoding="utf-8")
    assert "rests on" in text, "the sentence on few texts names the setting, too"
    assert not any(char in text for char in ("\x1b", "<img", "@all", "\nniah"))
