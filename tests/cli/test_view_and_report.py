"""``niah report`` and ``niah view``: wrong commands in one sentence, and what a report of several runs says."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

import niah as package
from tests.helpers.command import Command

QUICK = ("run", "--backend", "oracle", "--lengths", "512", "--depths", "3", "--trials", "2")


@pytest.fixture
def run(niah: Command, tmp_path: Path) -> Path:
    assert niah(*QUICK, "--kv", "int8", "--out", tmp_path / "results").code == 0
    return package.load(tmp_path / "results").path


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (("view", "nowhere"), 6, "there is no results folder 'nowhere'. `niah run` makes one"),
        (("view", "file"), 6, "'file' is a file, not a results folder"),
        (("view", ".", "--host", "0.0.0.0"), 2, "others can reach niah view, so it needs a token: add --token"),
        (("view", ".", "--host", "example"), 2, "others can reach niah view, so it needs a token"),
        (("view", ".", "--host", "no such host", "--token"), 2, "is no address of this machine"),
        (("view", ".", "--port", "70000"), 2, "--port 70000 is no port"),
        (("view", ".", "--port", "-1"), 2, "--port -1 is no port"),
        (("view", ".", "--palette", "rainbow"), 2, "no palette named 'rainbow'; use cividis or classic."),
        (("report", "nowhere"), 6, "there is no run folder 'nowhere'"),
        (("report", "file"), 6, "'file' is a file, not a run folder"),
        (("report", "."), 6, "holds no run.json and no run folders"),
        (("report", "a", "b"), 2, "the report of several runs belongs to none of them. Name its file with -o"),
        (("report", "nowhere", "--palette", "rainbow"), 2, "no palette named 'rainbow'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else None,
)
def test_wrong_command(
    niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], code: int, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("x")
    said = niah(*args)
    assert said.code == code
    assert sentence in said.err
    assert "Traceback" not in said.err
    assert len([line for line in said.err.splitlines() if line.startswith("niah: ")]) == 1


def test_a_port_in_use(niah: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = niah("view", tmp_path, "--port", port)
    assert said.code == 2
    assert f"cannot listen on 127.0.0.1 port {port}: it is in use. Choose another with --port" in said.err


@pytest.mark.parametrize("token", ["short", "with a space in it, and long", "sixteen-letters;and-more"])
def test_a_weak_token(niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("NIAH_VIEW_TOKEN", token)
    said = niah("view", tmp_path, "--host", "0.0.0.0")
    assert said.code == 2
    assert "NIAH_VIEW_TOKEN must have at least 16 letters and digits" in said.err
    assert token not in said.err


def test_without_the_extra_the_install_line(niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "uvicorn" else find(name, *a))
    said = niah("view", tmp_path)
    assert said.code == 2
    assert "niah view needs the package 'uvicorn'. Install it with: pip install 'niah-kv[view]'" in said.err


def test_a_run_without_rows_has_a_report(niah: Command, run: Path) -> None:
    (run / "rows.jsonl").write_text("")
    said = niah("report", run, "-o", run / "empty.html")
    assert said.code == 0
    assert "No cell has been run yet, so there is nothing to say." in (run / "empty.html").read_text()


def test_a_report_over_a_folder_is_refused(niah: Command, run: Path) -> None:
    said = niah("report", run, "-o", run)
    assert said.code == 6
    assert "is a folder. Name the file to write" in said.err


def test_a_report_of_two_runs(niah: Command, run: Path, tmp_path: Path) -> None:
    assert niah(*QUICK, "--kv", "int8", "--set", "backend.loss=0.9", "--out", tmp_path / "other").code == 0
    other = package.load(tmp_path / "other").path
    target = tmp_path / "both.html"
    said = niah("report", run, other, "-o", target, "--json")
    assert said.code == 0
    assert json.loads(said.out.splitlines()[-1]) == {"report": str(target)}
    html = target.read_text()
    assert "2 runs compared" in html
    assert f"Against {run.name}: too few contexts (2, and a verdict needs 6) to say for" in html


def test_the_classic_palette(niah: Command, run: Path) -> None:
    target = run / "classic.html"
    assert niah("report", run, "-o", target, "--palette", "classic").code == 0
    html = target.read_text()
    assert "linear-gradient(90deg,#f0496e,#ebb839,#0cd79f)" in html
    assert "#fee838" not in html


def test_needles_stand_in_the_report(niah: Command, run: Path) -> None:
    html = (run / "report.html").read_text()
    data = json.loads(html.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])
    assert len(data["pairs"]) == 6
    question, before, needle, after, _, matches = data["pairs"][0]
    expected = data["cells"][0][data["columns"].index("expected")][0]
    assert expected in needle
    assert matches == 1
    assert all((question, before, after))
