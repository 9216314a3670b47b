from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from niah import registry
from niah.errors import ConfigError
from tests.helpers.command import Command


def test_names_without_importing() -> None:
    code = (
        "import sys; from niah import registry; "
        "found = {k: registry.names(k) for k in registry.KINDS}; "
        "assert 'transformers' in found['backends'] and 'multikey' in found['tasks'], found; "
        "assert 'int8' in found['kv'] and 'chronicle' in found['haystacks'] and 'exact' in found['scoring'], found; "
        "loaded = [m for m in sys.modules if m.startswith('niah.') and m.count('.') > 1]; assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_listed_plugin_loads_and_has_a_summary(kind: str) -> None:
    for name in registry.names(kind):
        plugin = registry.load(kind, name)
        assert plugin.summary
        assert plugin.name.replace("_", "-") == name.replace("_", "-")


def test_misspelt_name_gets_a_near_one() -> None:
    with pytest.raises(ConfigError, match=r"no backend named 'transfomers'. Did you mean 'transformers'\?"):
        registry.load("backends", "transfomers")


TASK = """
from dataclasses import replace
from niah.tasks.passkey import PLUGIN
PLUGIN = replace(PLUGIN, name={name!r})
"""


def write(path: Path, name: str) -> Path:
    path.write_text(TASK.format(name=name))
    return path


def test_a_file_with_several_plugins(tmp_path: Path) -> None:
    path = tmp_path / "several.py"
    path.write_text(
        "from niah.plugins import KVConfig, KVPreset, ScorerPlugin, Score\n"
        "PLUGINS = [\n"
        "    KVPreset('eight', 'of mine', lambda: KVConfig('eight', 'int8', 'int8', 'token_head')),\n"
        "    ScorerPlugin('zero', 'nothing is right', 1, lambda answer, case: Score(0.0, False, 'never', 'zero', 1)),\n"
        "]\n"
    )
    assert [(plugin.kind, plugin.name) for plugin in registry.add_file(path)] == [("kv", "eight"), ("scoring", "zero")]
    assert registry.load("kv", "eight").summary == "of mine"
    assert "zero" in registry.names("scoring")


def test_an_edited_file_takes_the_place_of_what_it_was(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.py", "first")
    registry.add_file(path)
    before = registry.digest("tasks", "first")
    write(path, "later")  # within the same second, and of the same length
    registry.add_file(path)
    assert registry.load("tasks", "later").name == "later"
    assert registry.digest("tasks", "later") not in ("", before)
    assert "first" not in registry.names("tasks")
    assert not (tmp_path / "__pycache__").exists(), "nothing is left beside the user's file"


def test_a_copy_of_a_file_is_no_other_plugin(tmp_path: Path) -> None:
    registry.add_file(write(tmp_path / "one.py", "mine"))
    registry.add_file(write(tmp_path / "copy.py", "mine"))
    (tmp_path / "other.py").write_text(TASK.format(name="Mine") + "# not the same\n")
    with pytest.raises(ConfigError, match=r"other\.py': the task 'Mine' has the name of the one in '.*\.py'"):
        registry.add_file(tmp_path / "other.py")


WRONG = {
    "no plugin": ("X = 1\n", "must define PLUGIN, or PLUGINS for several"),
    "a number": ("PLUGIN = 1\n", "must define PLUGIN, or PLUGINS for several"),
    "numbers": ("PLUGINS = 5\n", "must define PLUGIN, or PLUGINS for several"),
    "an empty list": ("PLUGINS = ()\n", "must define PLUGIN, or PLUGINS for several"),
    "a class": ("from niah.plugins import TaskPlugin as PLUGIN\n", "must define PLUGIN, or PLUGINS for several"),
    "syntax": ("def broken(:\n", r"SyntaxError: .*line 1"),
    "no text": ("\0", "SyntaxError|ValueError"),
    "a package that is missing": ("import nobody_has_this\n", "ModuleNotFoundError: No module named 'nobody_has_this'"),
    "several lines": ("raise OSError('one\\ntwo')\n", r"OSError: one two\.$"),
    "the program's end": ("raise SystemExit(0)\n", "ends the program instead of defining a plugin"),
    "a public name that is none": ("from niah.plugins import KVPrest\n", "ImportError: cannot import name 'KVPrest'"),
    "niah's own name": (TASK.format(name="passkey"), "the task 'passkey' has the name of one of niah's own"),
    "niah's own name in capitals": (TASK.format(name="PASSKEY"), "has the name of one of niah's own"),
    "its own name twice": (TASK.format(name="twice") + "PLUGINS = [PLUGIN, PLUGIN]\n", "'twice' is defined twice"),
    "a name with spaces": (TASK.format(name="my task"), "needs a name of letters, digits, dots, dashes"),
    "no name": (TASK.format(name=""), "needs a name of letters, digits, dots, dashes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_are_told_in_one_sentence(niah: Command, tmp_path: Path, case: str) -> None:
    text, match = WRONG[case]
    path = tmp_path / "wrong.py"
    path.write_text(text)
    said = niah("list", "tasks", "--plugin", path)
    assert said.code == 2
    (line,) = said.err.strip().splitlines()
    assert line.startswith(f"niah: plugin file {str(path)!r}")
    assert re.search(match, line), line


def test_paths_that_are_no_python_file(niah: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("X = 1\n")
    for path, why in (
        (tmp_path, "is a folder"),
        (tmp_path / "no.py", "does not exist"),
        (tmp_path / "mine.txt", ".py"),
    ):
        said = niah("list", "tasks", "--plugin", path)
        assert (said.code, len(said.err.strip().splitlines())) == (2, 1)
        assert why in said.err
