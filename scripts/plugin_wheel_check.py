"""Build the package of docs/extend/README.md into a wheel, install it beside niah's, and run the page's commands.

Usage: plugin_wheel_check.py VENV, an environment in which niah's wheel is installed and nothing of this repository.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "extend" / "README.md"
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BROKEN = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "broken-package"
version = "1.0"

[project.entry-points."niah.tasks"]
broken = "broken_package:PLUGIN"
"""


def main(venv: Path) -> None:
    blocks = FENCE.findall(PAGE.read_text())
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NIAH_", "PYTHON"))}
    environment |= {"PATH": f"{venv.resolve() / 'bin'}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "160"}

    def run(command: str, cwd: Path) -> str:
        print(f"$ {command}", flush=True)
        shell = ["bash", "-c", command]
        done = subprocess.run(shell, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{done.stdout}\n{done.stderr}\nexit code {done.returncode}")
        return done.stdout + done.stderr

    with tempfile.TemporaryDirectory() as name:
        package, broken, elsewhere = (Path(name) / folder for folder in ("package", "broken", "elsewhere"))
        for folder in (package, broken, elsewhere):
            folder.mkdir()
        for kind, file, text in blocks:
            if file and kind != "console":
                (package / file).write_text(text)
        (broken / "pyproject.toml").write_text(BROKEN)
        (broken / "broken_package.py").write_text("import nobody_has_this\n")
        for folder in (package, broken):
            run("pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir wheels .", folder)
            run("pip --disable-pip-version-check install --quiet --no-deps wheels/*.whl", folder)
        for kind, mark, text in blocks:
            for command in (
                re.findall(r"^\$ (.+)$", text, re.MULTILINE) if (kind, mark) == ("console", "installed") else ()
            ):
                run(command, elsewhere)
        listed = run("niah list tasks", elsewhere)
        for line in ("the task 'broken' of the installed package 'broken-package'", "lenient  ", "multikey  "):
            if line not in listed:
                sys.exit(f"{line!r} is not in what niah list tasks prints:\n{listed}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
