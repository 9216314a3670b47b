"""Entry points of installed packages: those that work, those that cannot be loaded, and names that are taken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOOD = """
from dataclasses import replace
from niah.plugins import get

TASK = replace(get("tasks", "passkey"), name="its-task")
MULTIKEY = get("tasks", "multikey")
BACKEND = replace(get("backends", "oracle"), name="its-backend", has_batches=True)
NUMBER = 5
"""


def install(site: Path, package: str, points: dict[str, dict[str, str]], code: str) -> None:
    """What pip leaves of a wheel: a module, and beside it a folder that names its entry points."""
    record = site / f"{package.replace('-', '_')}-1.0.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"[niah.{kind}]\n" + "".join(f"{k} = {v}\n" for k, v in its.items()) for kind, its in points.items()]
    (record / "entry_points.txt").write_text("".join(lines))
    (site / f"{package.replace('-', '_')}.py").write_text(code)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    install(
        folder,
        "good-package",
        {
            "tasks": {"its-task": "good_package:TASK"},
            "backends": {"its-backend": "good_package:BACKEND"},
        },
        GOOD,
    )
    return folder


@pytest.fixture
def broken(site: Path) -> Path:
    kinds = ("tasks", "haystacks", "scoring", "backends", "kv", "formats")
    points = {kind: {f"broken-{kind}": "broken_package:PLUGIN"} for kind in kinds}
    install(site, "broken-package", points, "import nobody_has_this\n")
    return site


def niah(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}", "COLUMNS": "160"}
    command = [sys.executable, "-m", "niah", *arguments]
    return subprocess.run(command, cwd=site.parent, env=environment, capture_output=True, text=True, check=False)


RUN = ("run", "--lengths", "512", "--depths", "2", "--trials", "1", "--out", "out")


def test_an_installed_package_needs_no_option(site: Path) -> None:
    said = niah(site, *RUN, "--backend", "its-backend", "--task", "its-task")
    assert said.returncode == 0, said.stderr
    listed = niah(site, "list", "tasks", "its-task")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "ready" in next(line for line in niah(site, "doctor").stdout.splitlines() if "its-backend" in line)


def test_a_broken_package_is_named_and_stops_nothing_else(broken: Path) -> None:
    def reason(noun: str, name: str) -> str:
        return (
            f"niah: the {noun} {name!r} of the installed package 'broken-package': ModuleNotFoundError: "
            "No module named 'nobody_has_this'."
        )

    kinds = {"tasks": "task", "haystacks": "haystack", "scorers": "scorer", "backends": "backend"}
    for what, noun in kinds.items():
        said = niah(broken, "list", what)
        name = f"broken-{'scoring' if what == 'scorers' else what}"
        assert (said.returncode, said.stderr) == (0, reason(noun, name) + "\n")
        assert name not in said.stdout
    settings = niah(broken, "list", "kv")
    assert settings.returncode == 0
    told = [reason("KV setting", "broken-kv"), reason("backend", "broken-backends")]
    assert sorted(settings.stderr.splitlines()) == sorted(told)
    doctor = niah(broken, "doctor")
    assert (doctor.returncode, doctor.stderr) == (0, reason("backend", "broken-backends") + "\n")
    assert niah(broken, *RUN, "--backend", "oracle", "--task", "its-task").returncode == 0
    stored = niah(broken, "plan", "--backend", "transformers", "--kv", "int8", "--lengths", "512")
    assert (stored.returncode, stored.stderr) == (0, ""), "a stored format that nobody asks for is not missed"
    asked = niah(broken, *RUN, "--backend", "oracle", "--task", "broken-tasks")
    assert (asked.returncode, asked.stderr) == (2, reason("task", "broken-tasks") + "\n")


def test_names_that_are_taken(site: Path) -> None:
    points = {"tasks": {"its-task": "rival_package:TASK", "multikey": "rival_package:MULTIKEY"}}
    install(site, "rival-package", points, GOOD)
    said = niah(site, "list", "tasks")
    assert said.returncode == 0
    both, own = sorted(said.stderr.splitlines())
    assert "'its-task'" in both
    assert "has the same name as that of" in both
    assert "uninstall all but one" in both
    assert own == (
        "niah: the task 'multikey' of the installed package 'rival-package' is left out: "
        "niah has one of that name itself."
    )
    (site.parent / "mine.py").write_text(
        "from dataclasses import replace\nfrom niah.plugins import get\n"
        'PLUGIN = replace(get("backends", "fake"), name="Its_Backend")\n'
    )
    file = niah(site, "list", "backends", "--plugin", "mine.py")
    assert file.returncode == 2
    assert "has the name of the backend 'its-backend' of the installed package 'good-package'" in file.stderr


def test_an_entry_point_that_is_something_else(site: Path) -> None:
    points = {"tasks": {"odd": "odd_package:NUMBER", "other": "odd_package:TASK", "gone": "odd_package:NOTHING"}}
    install(site, "odd-package", points, GOOD)
    said = niah(site, "list", "tasks")
    assert said.returncode == 0
    gone, odd, other = said.stderr.splitlines()
    assert "the task 'gone' of the installed package 'odd-package': AttributeError" in gone
    assert "the task 'odd' of the installed package 'odd-package' is no task of that name" in odd
    assert "its entry point is 'odd_package:TASK'" in other
