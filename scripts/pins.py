"""Exact versions of what a set of requirements needs, as pip resolves them; the heads of requirements/*.txt call it.

``python scripts/pins.py requirements/run.txt '.[transformers]'`` writes the file anew behind its comments. Versions
that the file has are kept; ``--upgrade`` takes the newest. ``--frozen`` writes down what this environment has instead,
where pip would resolve more than is needed: without torch, which is installed before, and without weights.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

_PIN = re.compile(r"^[A-Za-z0-9][\w.-]*==\S+$")


def resolved(wanted: list[str], constraints: Path | None) -> dict[str, str]:
    """Name and version of all packages that pip would install into an empty environment, niah itself left out."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--dry-run"]
    command += ["--ignore-installed", "--report", "-", *wanted]
    if constraints is not None:
        command += ["--constraint", str(constraints)]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    found = {item["metadata"]["name"]: item["metadata"]["version"] for item in report["install"]}
    # a local build (+cpu) is found under the public number too
    return {name: version.partition("+")[0] for name, version in found.items() if name != "niah-kv"}


def frozen(path: Path) -> dict[str, str]:
    """Name and version of all packages of this environment, without torch and those that only carry weights."""
    apart = {"torch", "niah-kv"}
    for other in ("models.txt", "gemma3.txt"):
        apart |= {line.partition("==")[0] for line in (path.parent / other).read_text().splitlines()}
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "list", "--format", "json"]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    tools = {"pip", "setuptools", "wheel"}
    return {item["name"]: item["version"] for item in found if item["name"] not in apart | tools}


def main(path: Path, wanted: list[str], *, upgrade: bool) -> None:
    lines = path.read_text().splitlines()
    head = [line for line in lines if not _PIN.match(line)]
    left_out = {line.partition("==")[0] for name in _included(head, path) for line in name.read_text().splitlines()}
    pins = frozen(path) if wanted == ["--frozen"] else resolved(wanted, None if upgrade else path)
    kept = [f"{name}=={version}" for name, version in pins.items() if name not in left_out]
    path.write_text("\n".join([*head, *sorted(kept, key=str.lower)]) + "\n")


def _included(head: list[str], path: Path) -> list[Path]:
    return [path.parent / line.removeprefix("-r ") for line in head if line.startswith("-r ")]


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "--upgrade"]
    main(Path(arguments[0]), arguments[1:], upgrade="--upgrade" in sys.argv)
