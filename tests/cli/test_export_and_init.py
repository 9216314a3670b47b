"""``niah export`` in every format, and the config that ``niah init`` writes."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pytest

from niah import registry
from niah.config import build_config, load_yaml, validate
from niah.store.read import RunRecord
from tests.helpers.command import Command
from tests.helpers.known import known
from tests.helpers.made_rows import make_row

ODD = "=cmd|' /C calc'!A0 \x07 <b>&\ud83d"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rows = [
        make_row("bf16", 512, 0.0, 0, correct=True, answer="7"),
        make_row("bf16", 512, 1.0, 0, correct=False, answer=ODD, why=ODD, expected=("7", "seven")),
        make_row("int8", 512, 0.0, 0, None),
        make_row("int8", 512, 1.0, 0, None, outcome="truncated", error="truncated: stopped by 'length'"),
    ]
    path = tmp_path / "run"
    path.mkdir()
    settings = {"bf16": {"broken": False}, "int8": {"broken": True}}
    (path / "run.json").write_text(json.dumps({"schema": 1, "settings": settings}))
    (path / "rows.jsonl").write_text("".join(json.dumps(row.to_json()) + "\n" for row in rows))
    return path


def test_csv_is_a_table_and_no_program(niah: Command, run: Path, tmp_path: Path) -> None:
    said = niah("export", run, "--to", "csv", "-o", tmp_path / "out.csv")
    assert said.out.strip() == str(tmp_path / "out.csv")
    lines = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert [line["outcome"] for line in lines] == ["answered", "answered", "failed", "truncated"]
    assert lines[1]["answer"].startswith("'=cmd")
    assert json.loads(lines[1]["expected"]) == ["7", "seven"]
    assert lines[2]["correct"] == lines[2]["kv_memory_tokens"] == "", "what is not known is empty"
    assert list(lines[0]) == list(RunRecord.load(run).frame().columns)


def test_junit_tells_wrong_from_failed(niah: Command, run: Path, tmp_path: Path) -> None:
    niah("export", run, "--to", "junit", "-o", tmp_path / "out.xml")
    suites = ET.parse(tmp_path / "out.xml").getroot()
    counts = [tuple(suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")) for suite in suites]
    assert counts == [("bf16", "2", "1", "0", "0"), ("int8", "2", "0", "1", "1")]
    failure = suites.find(".//failure")
    assert failure is not None
    assert failure.get("message") == "=cmd|' /C calc'!A0 \ufffd <b>&\ufffd"
    assert known(suites.find(".//error")).get("type") == "engine"
    assert [prop.get("name") for prop in suites.iter("property")] == ["broken"]


def test_other_formats(niah: Command, run: Path, tmp_path: Path) -> None:
    assert niah("export", run, "--to", "csv").out.startswith("cell_id,pair_id,")
    niah("export", run, "--to", "parquet", "-o", tmp_path / "out.parquet")
    assert list(pd.read_parquet(tmp_path / "out.parquet")["kv"]) == ["bf16", "bf16", "int8", "int8"]
    niah("export", run, "--to", "jsonl", "-o", tmp_path / "out.jsonl")
    read = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert read[0]["kv_memory"]["source"] == "not_observable"
    niah("export", run, "--to", "markdown", "-o", tmp_path / "out.md")
    assert (tmp_path / "out.md").read_text().splitlines()[2].startswith("| bf16 | 50.0% |")


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (("--to", "excel"), 2, "no format named 'excel'. Known: csv, jsonl"),
        (("--to", "cvs"), 2, "Did you mean 'csv'?"),
        (("--to", "csv", "-o", "nowhere/out.csv"), 6, "cannot write"),
    ],
)
def test_wrong_exports(niah: Command, run: Path, args: tuple[str, ...], code: int, sentence: str) -> None:
    said = niah("export", run, *args)
    assert said.code == code
    assert sentence in said.err
    assert niah("export", run.parent / "none", "--to", "csv").code == 6


@pytest.mark.parametrize("backend", registry.names("backends"))
def test_a_starting_config_is_what_it_says(niah: Command, tmp_path: Path, backend: str) -> None:
    file = tmp_path / "mine.yaml"
    assert niah("init", file, "--backend", backend).out.strip() == str(file)
    config = build_config(load_yaml(file))
    assert config.backend.name == backend
    assert config.reuse == "on"
    # what stands as a comment is a default, so that taking the sign away changes nothing
    plugin = registry.load("backends", backend)
    listed = [line[4:] for line in file.read_text().splitlines() if line.startswith("  # ")]
    written = file.with_name("all.yaml")
    written.write_text("backend:\n" + "".join(f"  {line}\n" for line in [f"name: {backend}", *listed]))
    full = build_config(load_yaml(written))
    assert validate(plugin.options, full.backend.options, "backend") == validate(plugin.options, {}, "backend")
    assert len(listed) == len(plugin.options.model_fields)


def test_a_starting_config_runs(niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert niah("init", "-b", "oracle").code == 0
    assert niah("run", "niah.yaml", "-l", "512", "-d", "2", "-n", "1").code == 0
    again = niah("init", "-b", "fake")
    assert again.code == 2
    assert "'niah.yaml' exists" in again.err
    assert niah("init", "-b", "fake", "--force").code == 0
    assert niah("init", "-b", "fakes", "--force").code == 2
    assert niah("init", "nowhere/niah.yaml").code == 2


@pytest.mark.parametrize(("text", "value"), [("on", "on"), ("off", "off"), ("verify", "verify"), ("'on'", "on")])
def test_yaml_may_say_on_and_off(tmp_path: Path, text: str, value: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"reuse: {text}\n")
    assert build_config(load_yaml(file)).reuse == value
