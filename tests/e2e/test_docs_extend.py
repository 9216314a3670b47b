"""The pages of docs/extend as written: their files are put into an empty folder and their commands run there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "extend"
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 300


@dataclass(frozen=True)
class Step:
    """A command of a page, and lines that it must print, in order; ``…`` alone or at an end is whatever is left out."""

    command: str
    lines: tuple[str, ...]


def files(page: str) -> dict[str, str]:
    """Files of a page by name: blocks with a name behind the language."""
    return {name: text for kind, name, text in FENCE.findall((PAGES / page).read_text()) if name and kind != "console"}


def steps(page: str, marked: str) -> list[Step]:
    """Commands of the page's ``console`` blocks with that mark: lines that begin with ``$``, each with what follows."""
    found: list[Step] = []
    for language, mark, text in FENCE.findall((PAGES / page).read_text()):
        if (language, mark) == ("console", marked):
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, *lines = part.splitlines()
                found.append(Step(command, tuple(line for line in lines if line.strip() not in ("", "…"))))
    return found


def follow(page: str, folder: Path, *, marked: str = "", installed: Path | None = None) -> None:
    """Write the page's files and run its commands, each to exit code 0 and with the lines that it shows."""
    if installed is None:
        for name, text in files(page).items():
            (folder / name).write_text(text)
    found = steps(page, marked)
    assert found, f"{page} shows no command"
    code = [str(PAGES.parents[1]), *([str(installed)] if installed else [])]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NIAH_") or k == "NIAH_CACHE"} | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(code),
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "160",
    }
    for step in found:
        done = subprocess.run(
            ["bash", "-c", step.command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        said = f"$ {step.command}\n{done.stdout}"
        assert done.returncode == 0, said
        printed = iter([" ".join(line.split()) for line in done.stdout.splitlines()])
        for line in step.lines:
            shown = " ".join(line.split())
            same = (one.startswith(shown[:-1]) if shown.endswith("…") else one == shown for one in printed)
            assert any(same), f"{line!r} is not printed (there) by\n{said}"


@pytest.mark.parametrize("page", ["README.md", "task.md", "haystack.md", "scorer.md", "backend.md"])
def test_a_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    assert files(page)
    follow(page, tmp_path)


@pytest.mark.model
def test_the_method_of_the_page_does_what_it_says(smollm2_folder: Path, tmp_path: Path) -> None:
    assert len(files("kv-method.md")["int2.py"].splitlines()) < 60
    follow("kv-method.md", tmp_path)


def test_the_package_of_the_index_works_when_installed(tmp_path: Path) -> None:
    """As pip leaves it: modules, and beside them a folder that names the entry points."""
    made, site = files("README.md"), tmp_path / "site"
    project = tomllib.loads(made["pyproject.toml"])["project"]
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in its.items())
        for group, its in project["entry-points"].items()
    )
    record = site / f"{project['name']}-{project['version']}.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (record / "entry_points.txt").write_text(points)
    (site / "lenient.py").write_text(made["lenient.py"])
    (tmp_path / "elsewhere").mkdir()
    follow("README.md", tmp_path / "elsewhere", marked="installed", installed=site)
