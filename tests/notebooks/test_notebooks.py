"""The notebooks run from top to bottom, and are committed without output."""

from __future__ import annotations

import warnings
from pathlib import Path

import nbformat
import pytest

from tests.helpers import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_they_are_all_here() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["01_first_run", "02_read_results", "03_compare_kv"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_without_output(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbclient import NotebookClient

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(path, as_version=4)
    with warnings.catch_warnings():
        # the client's own event loop handling, on newer Pythons
        warnings.simplefilter("ignore", DeprecationWarning)
        NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert (tmp_path / "results").is_dir(), "it wrote where it ran"
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert shown
    assert not [output for output in shown if output.output_type == "error"]
