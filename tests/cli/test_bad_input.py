"""Wrong commands: one clear sentence, the documented exit code, nothing lost, no stack trace."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import niah as package
from tests.helpers.command import Command

QUICK = ("run", "--backend", "oracle", "--lengths", "512", "--depths", "3")


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (("run", "--backend", "orcale"), 2, "no backend named 'orcale'. Did you mean 'oracle'?"),
        ((*QUICK, "--task", "multikye"), 2, "no task named 'multikye'. Did you mean 'multikey'?"),
        ((*QUICK, "--kv", "int9"), 2, "no KV setting named 'int9'."),
        ((*QUICK, "--kv", "bf17"), 2, "Did you mean 'bf16'?"),
        ((*QUICK, "--haystack", "chronicel"), 2, "no haystack named 'chronicel'. Did you mean 'chronicle'?"),
        (("run", "--model", "smolm2"), 2, "no model named 'smolm2'. Did you mean 'smollm2'?"),
        (("run", "--model", "./nowhere"), 2, "the model folder './nowhere' does not exist"),
        ((*QUICK[:3], "--lengths", "4x"), 2, "4x"),
        ((*QUICK[:3], "--lengths", "8k..4k"), 2, "8k..4k"),
        ((*QUICK[:3], "--lengths", "0"), 2, "0"),
        ((*QUICK[:3], "--lengths", "64"), 2, "64"),
        ((*QUICK[:5], "--depths", "0,50,101"), 2, "101"),
        ((*QUICK[:5], "--depths", "-1,50"), 2, "-1"),
        ((*QUICK, "--set", "backend.windw=3"), 2, "unknown key 'backend.windw'. Did you mean 'window'?"),
        ((*QUICK, "--set", "task.kyes=3"), 2, "unknown key 'task.kyes'. Did you mean 'keys'?"),
        ((*QUICK, "--set", "nonsense"), 2, "must look like a.b=c"),
        ((*QUICK, "--set", "grid.trials=0"), 2, "grid.trials cannot be 0"),
        ((*QUICK, "--set", "task.keys=100000"), 2, "100000"),
        ((*QUICK, "--haystack", "missing.txt"), 2, "missing.txt"),
        ((*QUICK, "--set", "backend.context_tokens=400"), 2, "takes at most 400 tokens, and this cell has 512"),
        ((*QUICK, "--plugin", "missing.py"), 2, "'missing.py' does not exist"),
        (("run", "missing.yaml"), 2, "cannot read the config file 'missing.yaml'"),
        ((*QUICK, "--haystack", "~nosuchuser/x"), 2, "cannot be a path"),
        ((*QUICK, "--haystack", "pasted text " * 500), 2, "cannot be a path"),
        (("run", "--model", "~nosuchuser/x"), 2, "cannot be a path"),
        ((*QUICK, "--kv", ""), 2, "--kv is empty"),
        ((*QUICK, "--set", "kv=[]"), 2, "kv is empty"),
        ((*QUICK, "--set", "backend.loss={int9: 0.5}"), 2, "int9"),
        ((*QUICK, "--set", "backend.loss=1.5"), 2, "between 0 and 1"),
        (("show", "nowhere"), 6, "nowhere"),
        (("schema", "rows"), 2, "no schema named 'rows'. Did you mean 'row'?"),
        (("list", "backend"), 2, "Did you mean 'backends'?"),
        (("memory", "--model", "lama-2-70b"), 2, "llama-2-70b"),
        (("memory", "--gpu", "80GX"), 2, "80GX"),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, tuple) else None,
)
def test_wrong_command(
    niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: Any, code: int, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    said = niah(*args)
    assert said.code == code
    assert sentence in said.err
    assert "Traceback" not in said.err
    message = [line for line in said.err.splitlines() if line.startswith("niah: ")]
    assert len(message) == 1
    assert not (tmp_path / "results").exists(), "a refused command leaves nothing behind"


@pytest.mark.parametrize("text", ["def broken(:\n", "PLUGIN = 5\nKIND = 'tasks'\n", "raise OSError('no')\n"])
def test_plugin_files_that_cannot_be_loaded(niah: Command, tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    said = niah(*QUICK, "--plugin", path)
    assert said.code == 2
    assert "bad.py" in said.err
    assert "Traceback" not in said.err


def test_options_that_are_no_mapping(niah: Command, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("backend: {name: oracle, options: 5}\n")
    assert "backend.options must be a mapping, not 5" in niah("run", path).err


def test_a_corrupt_run_is_listed_as_such(niah: Command, tmp_path: Path) -> None:
    niah(*QUICK, "--out", tmp_path)
    file = package.load(tmp_path).path / "run.json"
    file.write_text("{")
    said = niah("list", "runs", "--out", tmp_path, "--json")
    assert said.code == 0
    assert said.document()["runs"][0]["status"] == "unreadable"


def test_broken_weights_are_one_sentence(niah: Command, tmp_path: Path, smollm2_folder: Path) -> None:
    import shutil

    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(smollm2_folder / name, tmp_path / name)
    (tmp_path / "model.safetensors").write_bytes((smollm2_folder / "model.safetensors").read_bytes()[:100_000])
    said = niah("run", "-m", tmp_path, "-l", "512", "-d", "2", "--kv", "bf16", "--out", tmp_path / "out")
    assert said.code == 2
    assert "model.safetensors of the model" in said.err
    assert "is cut short: it has 100,000 of" in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "out").exists()


def test_unknown_yaml_key(niah: Command, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("backend: oracle\ngird: {trials: 3}\n")
    said = niah("run", path)
    assert said.code == 2
    assert "unknown key 'gird'. Did you mean 'grid'?" in said.err


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "no text"), (b"\x00\x01\xff binary", "byte"), (b"One short line of text.", "tokens")],
)
def test_haystack_files_that_cannot_serve(niah: Command, tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    said = niah(*QUICK, "--haystack", path, "--out", tmp_path / "out")
    assert said.code == 2
    assert sentence in said.err
    assert "Traceback" not in said.err


def test_needle_that_stands_in_the_haystack(niah: Command, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    text = " ".join(f"The miller counted sack {word} of the long winter." for word in WORDS)
    path.write_text(f"The key is under the mat. {text}")
    said = niah(
        *(*QUICK, "--haystack", path, "--task", "single", "--set", "task.needle=The key is under the mat."),
        *("--set", "task.question=Where is the key?", "--set", "task.answer=under the mat", "--out", tmp_path / "o"),
    )
    assert said.code == 2
    assert "The key is under the mat" in said.err


WORDS = [f"{a}-{b}" for a in ("red", "blue", "old", "new", "big") for b in ("oak", "elm", "ash", "fir", "yew") * 4]


def test_results_that_cannot_be_written(niah: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = niah(*QUICK, "--out", tmp_path / "file")
    assert said.code == 6
    assert "is a file, not a folder of runs" in said.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere, so a read-only folder does not stop it")
def test_read_only_results(niah: Command, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert niah(*QUICK, "--out", tmp_path / "out").code == 6


def test_missing_extra_prints_the_install_line(niah: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else find(name, *rest))
    said = niah("run")
    assert said.code == 2
    assert "pip install 'niah-kv[transformers]'" in said.err


def test_debug_shows_the_trace(niah: Command) -> None:
    from niah.errors import ConfigError

    with pytest.raises(ConfigError):
        niah("--debug", "run", "--backend", "orcale")


def test_newer_rows_are_refused_and_kept(niah: Command, tmp_path: Path) -> None:
    niah(*QUICK, "--out", tmp_path)
    file = package.load(tmp_path).path / "rows.jsonl"
    row = json.loads(file.read_text().splitlines()[0]) | {"schema": 99}
    file.write_text(json.dumps(row) + "\n")
    said = niah("show", tmp_path)
    assert said.code == 6
    assert "newer niah" in said.err
    assert json.loads(file.read_text()) == row


def test_cell_ids_that_do_not_exist(niah: Command, tmp_path: Path) -> None:
    niah(*QUICK, "--out", tmp_path)
    said = niah("cell", tmp_path, "zzzz")
    assert said.code == 2
    assert "no cell" in said.err
    everything = niah("cell", tmp_path, "")
    assert everything.code == 2
    assert "6 cells" in everything.err
