"""Depths of a whole run on text that is no sentences, and how those that miss are told, from the plan to the report."""

from __future__ import annotations

import json
import random
from pathlib import Path

import niah as package
from niah.config import build_config
from niah.runner.plan import make_plan
from tests.helpers.command import Command
from tests.helpers.known import known
from tests.helpers.odd_texts import odd_text


def test_letters_without_a_blank(niah: Command, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text(odd_text("letters"))
    asked = ["--backend", "oracle", "--haystack", f"text:{tmp_path / 'letters.txt'}", "--task", "single"]
    asked += ["--depths", "11", "--lengths", "1k,4k", "--out", str(tmp_path / "runs")]
    assert "depths  " not in niah("plan", *asked, "--trials", "1").out
    said = niah("run", *asked, "--trials", "1")
    assert said.code == 0
    assert "from where asked" not in said.err
    record = package.load(tmp_path / "runs")
    assert record.manifest["depths_off"] == []
    for length, bound in ((1024, 0.02), (4096, 0.01)):
        rows = [row for row in record.rows if row.length == length]
        assert max(abs(known(row.depth_real) - row.depth) for row in rows) <= bound
        assert len({row.depth_real for row in rows}) == len(rows) == 11
        for row in rows[::5]:
            shown = niah("cell", record.path, row.cell_id, "--trust-run", "--json")
            assert shown.code == 0
            assert shown.document()["matches"] is True


def test_what_misses_is_told_everywhere(niah: Command, tmp_path: Path) -> None:
    asked = ["--backend", "oracle", "--haystack", "chronicle", "--depths", "11", "--lengths", "512", "--trials", "1"]
    planned = niah("plan", *asked)
    assert "more than 2 points from where asked: " in planned.out
    off = niah("plan", *asked, "--json").document()["depths_off"]
    assert off
    said = niah("run", *asked, "--out", tmp_path)
    line = next(line for line in planned.out.splitlines() if line.startswith("depths "))
    assert line.removeprefix("depths").strip() in said.err
    record = package.load(tmp_path)
    rows = {row.depth: known(row.depth_real) for row in record.rows}
    assert {item["depth"] for item in off} == {depth for depth, real in rows.items() if abs(real - depth) > 0.02}
    assert json.loads((record.path / "run.json").read_text())["depths_off"] == off
    page = (record.path / "report.html").read_text()
    assert f"Of the depths at each length, {len(off)} of 11 lie more than 2 points from where asked" in page
    worst = max(off, key=lambda item: abs(item["depth_real"] - item["depth"]))
    assert f">{worst['depth'] * 100:.3g}→{worst['depth_real'] * 100:.3g}</text>" in page
    assert f"needles at {worst['depth_real'] * 100:.4g} %" in page
    shown = niah("show", record.path).out
    assert "~ needle not at its depth" in shown
    assert shown.count("~") == len(off) + 1


def test_only_texts_of_long_sentences_have_new_ids(tmp_path: Path) -> None:
    rng = random.Random(3)
    prose = " ".join(f"The {rng.choice(['miller', 'widow'])} saw {n} boats on the river." for n in range(2000))
    texts = {"prose": prose, "letters": odd_text("letters")}
    placings = {}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
        haystack = {"name": "text", "argument": str(tmp_path / f"{name}.txt")}
        grid = {"lengths": "1k", "depths": "3"}
        config = {"backend": {"name": "oracle"}, "haystack": haystack, "grid": grid}
        plan = make_plan(build_config(config))
        group = plan.groups[0]
        cell, whole = plan.cells(plan.kvs[0], group)[0], plan.run_identity()
        placings[name] = plan.builder.is_coarse(group.length, group.trial)
        unplaced = make_plan(build_config(config))
        unplaced.builder._coarse = {(1024, 0): False}
        other = unplaced.cells(unplaced.kvs[0], group)[0]
        assert ((other.cell_id, other.pair_id) != (cell.cell_id, cell.pair_id)) is placings[name]
        assert (unplaced.run_identity() != whole) is placings[name]
    assert placings == {"prose": False, "letters": True}
