"""What the commands print: help without heavy imports, JSON documents with their promised keys."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from niah import registry
from tests.helpers.command import Command

HEAVY = ("torch", "transformers", "numpy", "pandas", "matplotlib", "pyarrow", "scipy", "datasets", "jinja2", "pydantic")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom niah.cli import app\nsys.argv = ['niah', '--help']\n"
        "try:\n    app.main()\nexcept SystemExit: pass\n"
        f"print('HEAVY', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "HEAVY []" in out
    for command in ("run", "plan", "show", "cell", "memory", "list", "doctor", "schema"):
        assert f" {command} " in out


@pytest.mark.parametrize("command", ["run", "plan", "show", "cell", "report", "memory", "list", "doctor", "schema"])
def test_every_command_has_help(niah: Command, command: str) -> None:
    said = niah(command, "--help")
    assert said.code == 0
    assert "Usage" in said.out


def test_plan_document(niah: Command) -> None:
    said = niah("plan", "-b", "oracle", "--kv", "bf16,int8", "-l", "512,1k", "-d", "11", "-n", "3", "--json")
    assert said.code == 0
    document = said.document()
    assert document["cells"] == document["prompts"] == 2 * 2 * 11 * 3
    assert document["tokens_unique"] < document["tokens_naive"]
    assert document["problems"] == []
    assert 0 < document["detectable_drop"] < 1
    assert document["assumed_correlation"] == 0.05
    assert document["correlation_source"].startswith("taken for granted: no earlier run of ")
    assert (document["power"], document["settings_compared"]) == (0.8, 1)
    assert {row["kv"] for row in document["kv_memory"]} == {"bf16", "int8"}
    few = niah("plan", "-b", "oracle", "--kv", "bf16,int8", "-l", "512,1k", "-d", "11", "-n", "2").out
    assert "needs 6 contexts (lengths × trials); these are 4" in few


def test_plan_lists_every_problem(niah: Command) -> None:
    said = niah("plan", "--kv", "bf16,nvfp4", "-l", "1k,16k", "--json")
    assert said.code == 2
    fields = {p["field"] for p in said.document()["problems"]}
    assert fields == {"kv", "lengths"}
    assert "16,384" in niah("plan", "-l", "16k").out


def test_list_kv_asks_every_backend(niah: Command) -> None:
    presets = {p["kv"]: p for p in niah("list", "kv", "--json").document()["presets"]}
    assert presets["int8"]["backends"]["transformers"] == {"runs": True, "reason": ""}
    assert not presets["nvfp4"]["backends"]["transformers"]["runs"]
    assert presets["nvfp4"]["backends"]["transformers"]["reason"]
    # a part of a setting is checked in a whole one, and names are those that people write
    assert presets["skip"]["backends"]["transformers"]["runs"]
    assert "tq-k8v4" in presets
    table = niah("list", "kv").out
    heading, int8 = (
        next(line.split() for line in table.splitlines() if line.startswith(f"  {n} ")) for n in ("KV", "int8")
    )
    assert int8[heading.index("transformers")] == "yes"
    assert int8[heading.index("llamacpp")] == "-"
    assert "openai" not in heading
    assert "anthropic, gemini, openai: only auto" in table
    assert "has no keys and values stored as nvfp4" in niah("list", "kv", "nvfp4").out
    assert "Did you mean 'int8'?" in niah("list", "kv", "int9").err


def test_list_takes_a_preset_from_a_file(niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_from_files", {})
    file = tmp_path / "mine.py"
    file.write_text(
        "from niah.plugins import KVConfig, KVPreset, TokenHead\n"
        'PLUGIN = KVPreset("mine8", "8 bits", lambda: KVConfig("mine8", TokenHead("int8"), TokenHead("int8")))\n'
    )
    (preset,) = niah("list", "kv", "mine8", "--plugin", str(file), "--json").document()["presets"]
    assert preset["backends"]["transformers"]["runs"]


@pytest.mark.parametrize("what", ["backends", "tasks", "haystacks", "scorers", "models", "runs"])
def test_lists(niah: Command, what: str, tmp_path: Path) -> None:
    niah("run", "-b", "oracle", "-l", "512", "-d", "2", "-n", "1", "--out", tmp_path)
    document = niah("list", what, "--out", tmp_path, "--json").document()
    assert document[what]
    assert all(entry["name"] for entry in document[what])
    assert niah("list", what, "--out", tmp_path).out


def test_show_and_report(niah: Command, tmp_path: Path) -> None:
    niah("run", "-b", "oracle", "--kv", "bf16,int8", "-l", "512", "-d", "3", "--out", tmp_path)
    (run,) = tmp_path.iterdir()
    said = niah("show", run, "--json")
    assert {s["kv"] for s in said.document()["settings"]} == {"bf16", "int8"}
    assert len(said.document()["cells"]) == 6
    assert "100" in niah("show", run, "--kv", "int8").out
    target = tmp_path / "other.html"
    assert niah("report", run, "-o", target, "--json").document() == {"report": str(target)}
    assert target.read_text().startswith("<!doctype html>") or "<html" in target.read_text()[:200].lower()
    for name in ("heatmap-bf16.png", "heatmap-int8.svg", "compare-int8.png", "rows.parquet", "report.html", "run.json"):
        assert (run / name).stat().st_size > 0


def test_dry_run_writes_nothing(niah: Command, tmp_path: Path) -> None:
    said = niah("run", "-b", "oracle", "-l", "512", "--dry-run", "--out", tmp_path / "out")
    assert said.code == 0
    assert not (tmp_path / "out").exists()


def test_environment_is_below_flags_and_above_yaml(
    niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("backend: oracle\ngrid: {lengths: 512, depths: 2, trials: 7}\n")
    monkeypatch.setenv("NIAH_TRIALS", "3")
    assert niah("plan", path, "--json").document()["cells"] == 2 * 3
    assert niah("plan", path, "--trials", "1", "--json").document()["cells"] == 2
    monkeypatch.setenv("NIAH_TRAILS", "3")
    assert "NIAH_TRAILS is not one that niah reads" in niah("plan", path).err


def test_doctor_never_shows_a_key(niah: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-private")
    for said in (niah("doctor"), niah("doctor", "--json")):
        assert said.code == 0
        assert "sk-very-private" not in said.out + said.err
    assert niah("doctor", "--json").document()["keys"]["OPENAI_API_KEY"] == "set"


def test_schemas_are_json(niah: Command) -> None:
    import json

    assert "grid" in json.loads(niah("schema", "config").out)["properties"]
    assert "kv_memory" in json.loads(niah("schema", "row").out)["properties"]


def test_the_command_that_goes_on_does_not_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from niah.cli.options import command_line

    monkeypatch.setattr(sys, "argv", ["niah", "run", "--fresh", "-l", "1k"])
    assert command_line() == "niah run --fresh -l 1k"
    assert command_line(resuming=True) == "niah run -l 1k"
