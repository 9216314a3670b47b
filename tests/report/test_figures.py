from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from niah.report.figures.over_length import memory_figure, save_memory, save_score, score_figure
from niah.store.read import RunRecord
from niah.store.schema import Row
from niah.types import KVUsage
from tests.helpers.known import known


def lines(figure: Figure) -> dict[Any, Any]:
    return {line.get_label(): line for line in figure.axes[0].lines}


def test_measured_points_lie_on_the_formula(record: RunRecord) -> None:
    figure = known(memory_figure(record))
    ax = figure.axes[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    drawn = lines(figure)
    assert {"bf16", "int8", "streaming(sinks=4,window=1024)", "kivi2 (broken)"} <= set(drawn)
    measured = drawn["bf16"]
    assert measured.get_linestyle() == "None"
    assert list(measured.get_xdata()) == [512, 1024, 2048, 4096, 8192]
    assert list(measured.get_ydata()) == [(n - 13) * 23040 for n in (512, 1024, 2048, 4096, 8192)]
    assert list(drawn["16-bit reference"].get_ydata()) == list(measured.get_ydata())
    assert drawn["naive MHA formula"].get_ydata()[0] == 499 * 69120
    # one formula line and one row of hollow points a setting
    unlabelled = [line for line in ax.lines if line.get_label() == "_"]
    assert len(unlabelled) == 8
    assert sum(line.get_markerfacecolor() == "none" for line in unlabelled) == 4
    figure.canvas.draw()


def test_formula_alone_is_drawn_and_named(record: RunRecord, cell: Callable[..., Row]) -> None:
    rows = tuple(cell(length=n, kv_memory=KVUsage(tokens=n, formula_bytes=n * 8)) for n in (512, 1024))
    drawn = lines(known(memory_figure(replace(record, rows=rows, manifest={}))))
    assert list(drawn["int8 formula"].get_ydata()) == [4096, 8192]


def test_nothing_to_draw(record: RunRecord, cell: Callable[..., Row], tmp_path: Path) -> None:
    hosted = replace(record, rows=(cell(kv_memory=KVUsage()),), manifest={})
    assert memory_figure(hosted) is None
    assert save_memory(hosted, tmp_path / "memory.png") is None
    failed = replace(record, rows=(cell(lost="failed"),), manifest={})
    assert score_figure(failed) is None
    assert save_score(failed, tmp_path / "score.png") is None
    assert list(tmp_path.iterdir()) == []


def test_scores_have_bands_unless_broken(record: RunRecord) -> None:
    figure = known(score_figure(record))
    ax = figure.axes[0]
    drawn = lines(figure)
    assert list(drawn["bf16"].get_ydata())[:2] == [1.0, 1.0]
    assert drawn["kivi2 (broken)"].get_linestyle() == "--"
    assert len(ax.collections) == 3
    assert ax.get_ylim() == (-0.03, 1.03)
    low = np.asarray(ax.collections[0].get_paths()[0].vertices)[:, 1].min()
    assert 0.6 < low < 0.8  # Wilson's lower end at 26 of 30


def test_one_length_gets_a_whisker(record: RunRecord, cell: Callable[..., Row]) -> None:
    rows = (cell(correct=True), cell(correct=False, trial=1))
    figure = known(score_figure(replace(record, rows=rows, manifest={})))
    assert len(figure.axes[0].containers) == 1
    figure.canvas.draw()


@pytest.mark.parametrize("save", [save_memory, save_score])
def test_files_are_the_same_each_time(record: RunRecord, tmp_path: Path, save: Any) -> None:
    first = save(record, tmp_path / "a.png").read_bytes()
    assert first == save(record, tmp_path / "b.png").read_bytes()
    assert first.startswith(b"\x89PNG")
