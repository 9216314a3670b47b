from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from niah.report.data.difference import build_difference, points, record_differences
from niah.report.data.geometry import edges, thinned
from niah.report.data.grid import BROKEN_LABEL, build_grid, record_grid
from niah.report.figures.difference import difference_map, save_difference
from niah.report.figures.drawing import new_figure
from niah.report.figures.heatmap import heatmap, save_heatmap
from niah.stats.intervals import wilson
from niah.store.read import RunRecord
from niah.store.schema import Row
from tests.helpers.known import known


def test_a_grid_counts_outcomes_apart(cell: Callable[..., Row]) -> None:
    rows = [
        cell(correct=True, trial=0, logprob=-1.0),
        cell(correct=False, trial=1, logprob=-3.0),
        cell(correct=True, trial=2, logprob=None),
        cell(trial=3, lost="failed"),
        cell(trial=4, lost="truncated"),
        cell(trial=5, lost="refused"),
    ]
    found = build_grid(rows, "int8").cells[1024, 0.5]
    assert (found.hits, found.trials, found.answered) == (2, 6, 3)
    assert (found.failed, found.truncated, found.refused) == (1, 1, 1)
    assert found.share == 2 / 3
    assert found.mean_logprob == -2.0
    assert found.interval == wilson(2, 3)
    assert found.few
    assert found.depth_real == pytest.approx(0.5021)


def test_a_repeated_cell_counts_once_and_failures_do_not_count_as_wrong(cell: Callable[..., Row]) -> None:
    rows = [cell(lost="failed"), cell(correct=True), cell(lost="failed")]
    found = build_grid(rows, "int8").cells[1024, 0.5]
    assert (found.hits, found.trials, found.failed, found.share) == (1, 1, 0, 1.0)


def test_axes_are_those_of_all_settings_and_of_the_plan(record: RunRecord, cell: Callable[..., Row]) -> None:
    rows = [cell(correct=True, kv="bf16", length=512, depth=0.0), cell(correct=True, kv="int8", length=2048, depth=1.0)]
    grid = build_grid(rows, "int8", lengths=[8192], depths=[0.25])
    assert grid.lengths == (512, 2048, 8192)
    assert grid.depths == (0.0, 0.25, 1.0)
    assert set(grid.cells) == {(2048, 1.0)}
    assert record_grid(record, "int8").lengths == (512, 1024, 2048, 4096, 8192)


def test_margins_sum_over_the_other_axis(record: RunRecord) -> None:
    grid = record_grid(record, "int8")
    assert grid.at_length(8192).answered == 18  # two of five depths have no answers
    assert grid.at_depth(0.25).failed == 2
    assert grid.total().trials == sum(c.trials for c in grid.cells.values()) == 144
    assert grid.title == "SmolLM2-135M-Instruct · int8 · multikey · n = 136"


def test_edges_and_labels() -> None:
    assert edges([1.0]) == [0.5, 1.5]
    assert edges([0.0, 1.0, 3.0]) == [-0.5, 0.5, 2.0, 4.0]
    assert len(thinned(list(range(100)))) <= 16


def drawn(ax: Axes) -> Any:
    return ax.collections[0]


def texts(ax: Axes) -> Any:
    return [t.get_text() for t in ax.texts]


def test_the_heatmap_draws_shares_on_a_fixed_scale(record: RunRecord) -> None:
    grid = record_grid(record, "int8")
    ax = heatmap(grid)
    values = drawn(ax).get_array()
    assert values.shape == (5, 5)
    assert drawn(ax).get_clim() == (0.0, 1.0)
    assert values[1, 3] == grid.cells[4096, 0.25].share == 0.5
    assert values.mask[2, 4]  # failed
    assert values.mask[4, 4]  # not run
    assert values.mask.sum() == 2
    assert "50" in texts(ax)
    assert len([t for t in texts(ax) if t.isdigit()]) == 23


def test_axes_have_tokens_on_log_2_and_depth_zero_at_the_top(record: RunRecord) -> None:
    ax = heatmap(record_grid(record, "bf16"))
    ax.figure.canvas.draw()
    assert ax.get_xscale() == "log"
    assert [t.get_text() for t in ax.get_xticklabels()] == ["512", "1k", "2k", "4k", "8k"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0", "25", "50", "75", "100"]
    bottom, top = ax.get_ylim()
    assert top < 0 < 100 < bottom
    assert ax.get_title() == "SmolLM2-135M-Instruct · bf16 · multikey · n = 143"


def test_states_have_shapes_and_a_legend(record: RunRecord) -> None:
    hatched = [p for p in heatmap(record_grid(record, "int8")).patches if isinstance(p, Rectangle) and p.get_hatch()]
    assert len(hatched) == 2
    # the failed square is covered whole, the half-failed one on its right only
    widths = sorted(math.log2((p.get_x() + p.get_width()) / p.get_x()) for p in hatched)
    assert widths == pytest.approx([0.16, 1.0])
    legend = heatmap(record_grid(record, "int8")).get_legend()
    assert [t.get_text() for t in known(legend).get_texts()] == ["failed", "fewer than 5 answers"]
    ax = heatmap(record_grid(record, "bf16"))
    assert [t.get_text() for t in known(ax.get_legend()).get_texts()] == ["truncated", "refused"]
    assert len(ax.lines) == 3  # two strokes of the cross, one bar
    assert heatmap(record_grid(record, "kivi2")).get_legend() is None


def test_a_broken_setting_is_stamped(record: RunRecord) -> None:
    assert BROKEN_LABEL in texts(heatmap(record_grid(record, "kivi2")))
    assert BROKEN_LABEL not in texts(heatmap(record_grid(record, "int8")))


def test_palettes(record: RunRecord) -> None:
    grid = record_grid(record, "int8")
    assert drawn(heatmap(grid)).cmap(1.0)[:3] == pytest.approx((254 / 255, 232 / 255, 56 / 255))
    classic = drawn(heatmap(grid, palette="classic")).cmap
    assert classic(0.0)[:3] == pytest.approx((0xF0 / 255, 0x49 / 255, 0x6E / 255))


def test_a_given_axes_is_used(record: RunRecord) -> None:
    ax = new_figure(5, 4).add_subplot()
    assert heatmap(record_grid(record, "int8"), ax) is ax


def test_one_square_and_close_lengths_can_be_drawn(cell: Callable[..., Row]) -> None:
    heatmap(build_grid([cell(correct=True)], "int8")).figure.canvas.draw()
    grid = build_grid(
        [cell(correct=True, length=4000), cell(correct=False, length=4096), cell(correct=True, length=100_000)], "int8"
    )
    ax = heatmap(grid)
    assert len(texts(ax)) < 3  # no number in a square that is too narrow for it
    assert drawn(ax).get_array().shape == (1, 3)


def test_no_squares_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one length"):
        heatmap(build_grid([], "int8"))


def test_dollar_signs_in_names_are_not_formulas(cell: Callable[..., Row]) -> None:
    grid = build_grid([cell(correct=True, model="a$b$c_{")], "int8")
    ax = heatmap(grid)
    ax.figure.canvas.draw()
    assert ax.get_title().startswith("a$b$c_{")


def test_files_are_the_same_each_time(record: RunRecord, tmp_path: Path) -> None:
    grid = record_grid(record, "int8")
    first = [p.read_bytes() for p in save_heatmap(grid, tmp_path / "heatmap-v1.5-a")]
    again = save_heatmap(grid, tmp_path / "heatmap-v1.5-b")
    assert [p.name for p in again] == ["heatmap-v1.5-b.png", "heatmap-v1.5-b.svg"]
    assert [p.read_bytes() for p in again] == first
    assert first[0].startswith(b"\x89PNG")
    assert b"dc:date" not in first[1]


def test_differences_are_paired(cell: Callable[..., Row]) -> None:
    rows = [
        cell(correct=True, kv="bf16", trial=0), cell(correct=False, kv="int8", trial=0),  # lost
        cell(correct=True, kv="bf16", trial=1), cell(correct=True, kv="int8", trial=1),
        cell(correct=False, kv="bf16", trial=2), cell(correct=True, kv="int8", trial=2),  # gained
        cell(correct=True, kv="bf16", trial=3), cell(correct=False, kv="int8", trial=3),  # lost
        cell(correct=True, kv="bf16", trial=4), cell(kv="int8", trial=4, lost="failed"),
        cell(correct=False, kv="int8", trial=5),  # the reference has no such cell
    ]  # fmt: skip
    found = build_difference(rows, rows, "int8", "bf16").cells[1024, 0.5]
    assert (found.pairs, found.gained, found.lost) == (4, 1, 2)
    assert found.delta == -0.25


def test_the_difference_map_shows_only_pairs(record: RunRecord) -> None:
    differences = record_differences(record)
    assert [d.kv for d in differences] == ["int8", "streaming(sinks=4,window=1024)", "kivi2"]
    assert [d.broken for d in differences] == [False, False, True]
    ax = difference_map(differences[0])
    values = drawn(ax).get_array()
    assert drawn(ax).get_clim() == (-0.5, 0.5)
    assert values.mask[2, 4]
    assert values.mask[3, 1]
    assert values.mask.sum() == 3
    cells = differences[0].cells
    assert values[0, 4] == cells[8192, 0.0].delta
    assert points(cells[8192, 0.0].delta) in texts(ax)
    assert BROKEN_LABEL in texts(difference_map(differences[2]))


def test_a_run_without_a_reference_has_no_differences(record: RunRecord) -> None:
    assert record_differences(replace(record, manifest={**record.manifest, "reference": None})) == []


def test_points() -> None:
    assert [points(x) for x in (0.05, -0.334, 0.0, -0.001)] == ["+5", "−33", "0", "0"]


def test_a_difference_is_saved(record: RunRecord, tmp_path: Path) -> None:
    path = save_difference(record_differences(record)[0], tmp_path / "compare-int8.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert record_differences(record)[0].depths == (0.0, 0.25, 0.5, 0.75, 1.0)
