"""The paths of modules and tests that the documentation names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("docs/**/*.md")), *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY"))]
# in backticks, alone or in a command or sentence; <name> and * stand for any name
NAMED = re.compile(r"(?<![\w./-])(?:niah|tests)/[\w./*<>-]*[\w/*>]")


def named_paths(page: str) -> set[str]:
    """Every ``niah/...`` and ``tests/...`` path in the code spans and code blocks of a page."""
    code = re.findall(r"```.*?```|`[^`\n]+`", page, re.DOTALL)
    return {path for span in code for path in NAMED.findall(span)}


def exists(path: str) -> bool:
    return any(ROOT.glob(re.sub(r"<\w+>", "*", path)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_paths_that_a_page_names_exist(page: Path) -> None:
    assert sorted(path for path in named_paths(page.read_text(encoding="utf-8")) if not exists(path)) == []


def test_paths_are_found_in_the_pages() -> None:
    found = set().union(*(named_paths(page.read_text(encoding="utf-8")) for page in PAGES))
    assert "niah/tasks/<name>.py" in found, "the rule finds no path that CONTRIBUTING.md names"
    assert named_paths("see `niah/kv/gone.py`, not niah/kv/text.py") == {"niah/kv/gone.py"}
    assert not exists("niah/kv/gone.py")
