"""The report's own curves: what is drawn, as numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from niah.report.data.difference import build_difference
from niah.report.data.grid import build_grid
from niah.report.data.summary import summaries
from niah.report.page.chart import across_lengths, down, steps
from niah.report.page.curves import cost_chart, spread_chart, time_charts
from niah.report.page.logprob import logprob_change_map, logprob_map
from niah.report.page.monitor import monitor_charts
from niah.report.page.svg import difference_picture
from niah.report.page.tradeoff import tradeoff_chart
from niah.store.metrics import write_metrics
from niah.store.read import RunRecord
from niah.store.schema import Row
from niah.types import Timing
from tests.helpers.known import known


def places(line: Any) -> Any:
    return [tuple(map(float, point.split(","))) for point in line.split()]


def test_steps_are_round_and_cover_the_range() -> None:
    assert steps(0.0, 1.0, 5) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert steps(0.0, 37.0) == [0.0, 10.0, 20.0, 30.0, 40.0]
    for high in (0.013, 1, 99, 12_345):
        assert steps(0.0, high)[-1] >= high


def test_scales() -> None:
    x = across_lengths([512, 1024, 2048])
    assert x(1024) - x(512) == pytest.approx(x(2048) - x(1024))
    assert across_lengths([512])(512) > 0
    assert down(0, 1)(1) < down(0, 1)(0)


def test_time_is_the_median_with_the_middle_of_the_rest(cell: Callable[..., Row]) -> None:
    rows = tuple(
        cell(length=length, trial=n, cell_id=f"{length}-{n}", timing=Timing(0.1, 5.0, seconds))
        for length in (512, 1024)
        for n, seconds in enumerate((1.0, 2.0, 3.0, 4.0, 100.0))
    )
    record = RunRecord(Path("x"), {}, rows)
    per_cell, first = time_charts(record)
    assert per_cell.table[0][1] == "3 seconds (1.4–61.6)"
    assert first.table[0][2] == "5 seconds (5–5)"
    assert len(first.y_ticks) >= 2
    (series,) = per_cell.series
    assert len(places(series.line)) == 2
    assert len(places(series.band)) == 4
    assert time_charts(RunRecord(Path("x"), {}, (cell(timing=Timing()),))) == []


def test_cost_is_drawn_when_rows_know_it(cell: Callable[..., Row]) -> None:
    record = RunRecord(Path("x"), {}, (cell(),))
    assert cost_chart(record) is None
    prices = (("a", 0.002, 1024), ("b", 0.004, 1024), ("from the answer cache", 0.0, 1024), ("c", None, 4096))
    rows = tuple(cell(cell_id=name, cost_usd=cost, length=length) for name, cost, length in prices)
    chart = known(cost_chart(replace(record, rows=rows)))
    assert chart.table == [["int8", "0.003 US dollars (0.0022–0.0038)"]]
    assert chart.y_title == "US dollars"


def test_only_answered_rows_count(cell: Callable[..., Row]) -> None:
    rows = (cell(timing=Timing(0, 0, 2.0)), cell(trial=1, cell_id="f", lost="failed", timing=Timing(0, 0, 99.0)))
    chart = known(spread_chart(RunRecord(Path("x"), {}, rows), "t", "n", "s", lambda row: row.timing.total_s))
    assert chart.table == [["int8", "2 s (2–2)"]]


def test_the_edge_joins_what_nothing_smaller_beats(record: RunRecord) -> None:
    chart = known(tradeoff_chart(summaries(record)))
    beaten = {line[0]: line[-1] for line in chart.table}
    assert beaten == {"bf16": "no", "int8": "no", "streaming(sinks=4,window=1024)": "no", "kivi2": "broken"}
    edge, *settings = chart.series
    assert len(places(edge.line)) == 3
    assert [s.marks[0].hollow for s in settings] == [False, False, False, True]
    assert all(s.marks[0].whisker for s in settings)
    heights = [s.marks[0].name_y for s in settings]
    assert len(set(heights)) == 4
    assert tradeoff_chart([replace(s, kv_bytes_per_token=None) for s in summaries(record)]) is None


def test_logprob_maps_share_fixed_scales(cell: Callable[..., Row]) -> None:
    rows = [
        cell(kv=kv, depth=depth, pair_id=f"p{depth}", cell_id=f"{kv}{depth}", logprob=logprob)
        for kv, depth, logprob in (("bf16", 0.0, 0.0), ("bf16", 1.0, -5.0), ("int8", 0.0, -2.0), ("int8", 1.0, None))
    ]
    sure, lost = known(logprob_map(build_grid(rows, "bf16"), "cividis")).squares
    assert (sure.fill, sure.text) == ("#fee838", "0")
    assert (lost.fill, lost.text) == ("#00224e", "−5.0")
    (changed,) = known(logprob_change_map(build_difference(rows, rows, "int8", "bf16"))).squares
    assert (changed.text, changed.fill) == ("−2.0", "#b25706")
    assert "7.39 times less likely" in changed.tooltip
    assert logprob_map(build_grid([cell(logprob=None)], "int8"), "cividis") is None


def test_squares_that_may_be_chance_are_pale(cell: Callable[..., Row]) -> None:
    def rows(trials: Any) -> Any:
        return [
            cell(correct=kv == "bf16", kv=kv, depth=depth, trial=n, pair_id=f"{depth}-{n}", cell_id=f"{kv}-{depth}-{n}")
            for kv in ("bf16", "int8")
            for depth, count in ((0.0, trials), (1.0, 2))
            for n in range(count)
        ]

    many = difference_picture(build_difference(rows(12), rows(12), "int8", "bf16"))
    assert [(square.text, square.pale) for square in many.squares] == [("−100", False), ("−100", True)]
    assert many.table[0][1] == "−100 of 12 (beyond chance)"
    assert "may be chance" in many.squares[1].tooltip


def metric_lines(count: Any, kv: str = "bf16", **values: Any) -> Any:
    return [
        {"at": f"2026-11-29T00:{n // 60:02d}:{n % 60:02d}+00:00", "kv": kv, **{k: f(n) for k, f in values.items()}}
        for n in range(count)
    ]


def write_lines(path: Any, lines: Any) -> None:
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_sampled_metrics_over_time(tmp_path: Path) -> None:
    lines = metric_lines(
        600,
        kv_cache_usage_perc=lambda n: 0.9 if n == 333 else 0.2,
        prefix_cache_hits=lambda n: 5_000 + n,
        num_requests_waiting=lambda n: 0,
        odd_reading=lambda n: n % 7,
    )
    write_lines(tmp_path, lines)
    charts = monitor_charts(RunRecord(tmp_path, {}, ()))
    assert [chart.title for chart in charts] == ["KV pool in use", "Tokens taken from the prefix cache", "odd reading"]
    usage, cached, _ = charts
    assert usage.table == [["bf16", "600", "20.12 %", "90 %"]]
    points = places(usage.series[0].line)
    assert len(points) <= 240
    assert min(y for _, y in points) < 40, "the one peak stays when points are thinned"
    assert cached.table[0][-1] == "599"


def test_metrics_of_a_folder_that_kept_the_parquet_only(tmp_path: Path) -> None:
    write_lines(tmp_path, metric_lines(5, num_requests_running=lambda n: n))
    write_metrics(tmp_path)
    (tmp_path / "metrics.jsonl").unlink()
    (chart,) = monitor_charts(RunRecord(tmp_path, {}, ()))
    assert chart.title == "Requests running"
    assert chart.table == [["bf16", "5", "2", "4"]]


def test_a_night_between_two_readings_is_not_drawn(tmp_path: Path) -> None:
    lines = metric_lines(3, num_requests_running=lambda n: 1)
    lines += [{**line, "at": line["at"].replace("-29T", "-30T")} for line in lines]
    write_lines(tmp_path, lines)
    (chart,) = monitor_charts(RunRecord(tmp_path, {}, ()))
    assert float(re.sub(r"[^0-9.]", "", chart.x_ticks[-1].text)) <= 64


@pytest.mark.parametrize(
    "line", [{"kv": "x"}, {"at": "never", "kv": "x", "a": 1}, {"at": 5, "a": 1}, {"at": "x", "a": "b"}]
)
def test_odd_readings_do_no_harm(tmp_path: Path, line: Any) -> None:
    write_lines(tmp_path, [line, line])
    assert len(monitor_charts(RunRecord(tmp_path, {}, ()))) <= 1
