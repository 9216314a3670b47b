"""A config that is wrong, doubled or a bomb: one sentence, at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from niah.config import apply_sets, build_config, load_yaml
from niah.errors import ConfigError
from niah.limited_yaml import read_yaml

# nine levels of nine aliases: a billion values from 500 characters
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
BROKEN = {
    "alias bomb": (BOMB, "over 20,000 values when its aliases are written out"),
    "alias of itself": ("grid: &g\n  lengths: *g\n", "stands inside of what it stands for"),
    "list of itself": ("kv: &k [*k]\n", "stands inside of what it stands for"),
    "brackets": ("kv: " + "[" * 5000, "nested too deeply"),
    "closed brackets": ("kv: " + "[" * 5000 + "]" * 5000, "nested too deeply"),
    "braces": ("grid: " + "{a: " * 5000, "nested too deeply"),
    "dashes": ("kv:\n" + "- " * 5000 + "x", "nested too deeply"),
    "long": ("# " + "x" * 1_000_001, "characters, and a config has at most 1,000,000"),
    "grid twice": (
        "grid: {lengths: 1k}\nkv: int8\ngrid: {depths: 3}\n",
        "the key 'grid' is given twice, in lines 1 and 3",
    ),
    "inner key twice": ("grid:\n  seed: 1\n  seed: 2\n", "the key 'seed' is given twice, in lines 2 and 3"),
    "whole number": (f"grid: {{seed: {'9' * 30}}}", "a whole number beyond 64 bits"),
    "endless number": (f"grid: {{seed: {'9' * 5000}}}", "cannot be read"),
    "thirteenth month": ("out: 2026-13-45", "cannot be read"),
    "code": ("out: !!python/object/apply:os.system ['true']", "could not determine a constructor"),
    "no YAML": ("grid: [", "not valid YAML"),
    "control character": ("out: a\x07b", "not valid YAML"),
}


@pytest.mark.parametrize(("text", "reason"), BROKEN.values(), ids=list(BROKEN))
def test_one_sentence_at_once(niah: Any, tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    started = time.monotonic()
    with pytest.raises(ConfigError) as raised:
        load_yaml(file)
    assert time.monotonic() - started < 5
    assert reason in str(raised.value)
    assert len(str(raised.value)) < 600
    said = niah("plan", file)
    assert said.code == 2
    assert len(said.err.strip().splitlines()) == 1
    assert "Traceback" not in said.err


def test_what_is_allowed() -> None:
    assert read_yaml("a: &x {seed: 1}\nb: *x\nc: {<<: *x, seed: 2}\n") == {
        "a": {"seed": 1},
        "b": {"seed": 1},
        "c": {"seed": 2},
    }
    assert read_yaml("") is None
    assert read_yaml("seed: 9223372036854775807")["seed"] == 2**63 - 1


def test_the_grids_keys_may_stand_alone(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("lengths: 1k\ndepths: [0, 50]\ntrials: 3\nseed: 4\n")
    grid = build_config(load_yaml(file)).grid
    assert (grid.lengths, grid.depths, grid.trials, grid.seed) == ("1k", "0,50", 3, 4)
    file.write_text("lengths: 1k\ngrid: {depths: 7}\n")
    assert build_config(load_yaml(file)).grid.depths == "7"
    file.write_text("lengths: 1k\ngrid: {lengths: 2k}\n")
    with pytest.raises(ConfigError, match=r"lengths is given twice: alone and as grid\.lengths"):
        load_yaml(file)
    assert build_config(apply_sets({}, ["lengths=2k", "trials=auto"])).grid.lengths == "2k"


PLUGIN = """
from pathlib import Path
Path({marker!r}).write_text("run")
from dataclasses import replace
from niah.tasks.multikey import PLUGIN
KIND = "tasks"
PLUGIN = replace(PLUGIN, name={name!r})
"""
PLAN = ("--backend", "oracle", "--lengths", "512", "--kv", "int8")


@pytest.mark.parametrize("how", ["list", "text", "set", "set list"])
def test_plugins_of_a_config_are_code_and_said(niah: Any, tmp_path: Path, how: str) -> None:
    marker, plugin, file = tmp_path / "marker", tmp_path / "mine.py", tmp_path / "run.yaml"
    name = f"mine-{how.replace(' ', '-')}"
    plugin.write_text(PLUGIN.format(marker=str(marker), name=name))
    file.write_text({"list": f"plugins: [{plugin}]\n", "text": f"plugins: {plugin}\n"}.get(how, "answer_budget: 24\n"))
    sets = {"set": ("--set", f"plugins={plugin}"), "set list": ("--set", f"plugins=[{plugin}]")}.get(how, ())
    said = niah("plan", file, *PLAN, "--task", name, *sets, "--json")
    assert said.code == 0, said.err
    assert marker.exists()
    if not sets:
        assert f"{file} names plugin files, which are run now: {plugin}" in said.err


@pytest.mark.parametrize("value", ["7", "{a: b}", "[7]"])
def test_plugins_that_are_no_files_are_refused(niah: Any, value: str) -> None:
    said = niah("plan", *PLAN, "--set", f"plugins={value}")
    assert said.code == 2
    assert "plugins must be a list of Python files" in said.err


@pytest.mark.parametrize(
    ("text", "reason"),
    {
        "lengths: 0777": "'0777' in line 1 as another number",
        "grid:\n  lengths: 12:30": "'12:30' in line 2 as another number",
        "seed: 017": "'017' in line 1 as another number",
        "shard: 1:4": "'1:4' in line 1 as another number",
        "kv: !!bool x": "a value in it cannot be read",
        "kv: on": "kv cannot be True: write names, such as int8",
        "kv: [off, int8]": "kv cannot be [False, 'int8']: write names, such as int8",
        "kv: 2026-01-01": "write names, such as int8",
    }.items(),
)
def test_what_yaml_reads_otherwise_than_people_is_refused(niah: Any, tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    said = niah("plan", file)
    assert said.code == 2
    assert reason in said.err
    assert len(said.err.strip().splitlines()) == 1


def test_numbers_that_everybody_reads_alike_are_taken() -> None:
    assert read_yaml("[0, 10, -5, 0.5, 1_024, 0x400, '0777', '12:30', 1.5e+3]") == [
        *(0, 10, -5, 0.5, 1024, 1024, "0777", "12:30", 1500.0)
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_config_may_have_a_mark_of_its_encoding(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: modèle\nlengths: 1k\n", encoding=encoding)
    assert load_yaml(file) == {"model": "modèle", "grid": {"lengths": "1k"}}
    file.write_bytes("model: modèle\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"not UTF-8 at byte 10\. Save it as UTF-8 text"):
        load_yaml(file)
