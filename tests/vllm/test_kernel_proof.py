"""niah's formats store what vLLM's GPU kernels store: those run in Triton's interpreter, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.vllm.proof.interpreter import Row

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.stem for path in (Path(__file__).parent / "proof").glob("[!_]*.py") if path.stem != "interpreter")
PAGE = ROOT / "docs/vllm-formats.md"
BEGIN, END = "<!-- proof -->", "<!-- /proof -->"
HEADER = (
    "| format | compared | head sizes | inputs | bits equal | largest difference | allowed | why |\n" + "|---" * 8 + "|"
)


@cache
def proved(module: str) -> list[Row]:
    """The rows of one module; the interpreter must be on before Triton is imported, so it gets its own process."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.vllm.proof.{module}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    rows: list[Row] = json.loads(done.stdout.splitlines()[-1])
    return rows


@pytest.mark.parametrize("module", MODULES)
def test_niah_stores_what_the_kernels_store(module: str) -> None:
    rows = proved(module)
    assert {row["what"] for row in rows} >= {"codes", "decode"}
    differing = [row for row in rows if not row["equal"]]
    assert [row for row in differing if not row["bound"] or row["largest"] > row["bound"]] == []


def test_the_page_shows_what_was_proved() -> None:
    """Writes the table between the marks of the page."""
    table = _table([row for module in MODULES for row in proved(module)])
    assert table.count("\n") > len(MODULES)
    if not PAGE.exists():
        pytest.skip(f"{PAGE.name} is not here")
    text = PAGE.read_text()
    if BEGIN not in text:
        pytest.skip(f"{PAGE.name} has no place for the table")
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    assert found, f"{PAGE.name} has {BEGIN} without {END}"
    written = f"{before}{BEGIN}\n{table}\n{END}{after}"
    if written != text:
        draft = PAGE.with_suffix(f".{os.getpid()}")
        draft.write_text(written)
        draft.replace(PAGE)


def _table(rows: list[Row]) -> str:
    """One line for each format, thing compared and cause, over all head sizes and inputs."""
    lines: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        lines[row["format"], row["what"], row["cause"]].append(row)
    return "\n".join([HEADER, *(_line(*key, found) for key, found in lines.items())])


def _line(stored: str, what: str, cause: str, rows: list[Row]) -> str:
    dims = ", ".join(str(dim) for dim in sorted({row["head_dim"] for row in rows}))
    inputs = len({row["inputs"] for row in rows})
    equal = sum(row["equal"] for row in rows)
    same = "all" if equal == len(rows) else f"{equal} of {len(rows)}"
    largest, bound = (f"{max(row[name] for row in rows):.1e}" for name in ("largest", "bound"))
    allowed = "none" if not any(row["bound"] for row in rows) else bound
    return f"| `{stored}` | {what} | {dims} | {inputs} | {same} | {largest} | {allowed} | {cause} |"
