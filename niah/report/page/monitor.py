"""What a server or card said of itself during a run: its sampled metrics over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from niah.report.page.chart import Chart, Scale, Series, across, down, polyline, px, steps
from niah.report.page.svg import Label
from niah.report.palette import series_color
from niah.store.metrics import load_samples
from niah.store.read import RunRecord

# a run that was resumed the next day is not drawn as a day of silence
_LONGEST_GAP_S = 60.0
_MOST_POINTS = 240
_MOST_CHARTS = 8


@dataclass(frozen=True, slots=True)
class Metric:
    """How a sampled metric is shown. A counter is drawn as its growth since its first reading."""

    title: str
    unit: str = ""
    scale: float = 1.0
    counter: bool = False


METRICS = {
    "kv_cache_usage_perc": Metric("KV pool in use", "%", 100.0),
    "num_requests_running": Metric("Requests running"),
    "prefix_cache_hits": Metric("Tokens taken from the prefix cache", counter=True),
    "num_requests_waiting": Metric("Requests waiting"),
    "num_preemptions": Metric("Requests preempted", counter=True),
    "prompt_tokens": Metric("Prompt tokens processed", counter=True),
    "gpu_utilization_perc": Metric("GPU busy", "%"),
    "gpu_memory_used_bytes": Metric("GPU memory in use", "GiB", 2.0**-30),
}
# counters that only make sense beside another one
_LEFT_OUT = {"prefix_cache_queries"}


def monitor_charts(record: RunRecord) -> list[Chart]:
    """One chart a metric, one line a KV setting, over the seconds since the setting's first reading."""
    samples = [s for s in load_samples(record.path) if isinstance(s.get("at"), str)]
    names = dict.fromkeys(name for sample in samples for name in sample if _is_number(sample[name]))
    known = [name for name in METRICS if name in names]
    known += [name for name in names if name not in METRICS and name not in _LEFT_OUT]
    clocks = _clocks(samples)
    charts = [
        _chart(name, METRICS.get(name, Metric(name.replace("_", " "))), samples, clocks, record) for name in known
    ]
    return [chart for chart in charts if chart is not None][:_MOST_CHARTS]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _clocks(samples: Sequence[Mapping[str, Any]]) -> list[float]:
    """Seconds of each reading since its setting's first one, long silences shortened."""
    last: dict[str, tuple[float, float]] = {}
    clocks = []
    for sample in samples:
        kv = str(sample.get("kv"))
        try:
            moment = datetime.fromisoformat(sample["at"]).timestamp()
        except (ValueError, OverflowError):
            moment = last[kv][0] if kv in last else 0.0
        before, clock = last.get(kv, (moment, 0.0))
        clock += min(max(0.0, moment - before), _LONGEST_GAP_S)
        last[kv] = (moment, clock)
        clocks.append(clock)
    return clocks


def _chart(
    name: str, metric: Metric, samples: Sequence[Mapping[str, Any]], clocks: Sequence[float], record: RunRecord
) -> Chart | None:
    found: dict[str, list[tuple[float, float]]] = {}
    for sample, clock in zip(samples, clocks, strict=True):
        if _is_number(sample.get(name)):
            found.setdefault(str(sample.get("kv")), []).append((clock, float(sample[name]) * metric.scale))
    if metric.counter:
        found = {kv: [(clock, value - points[0][1]) for clock, value in points] for kv, points in found.items()}
    every = [value for points in found.values() for _, value in points]
    if not every or not any(every):
        return None  # a metric that never moved from zero says nothing
    last = max(clock for points in found.values() for clock, _ in points)
    x_steps, y_steps = steps(0.0, max(last, 1.0)), steps(0.0, max(every), most=5)
    x, y = across(0.0, max(last, 1.0)), down(0.0, y_steps[-1])
    order = [*record.kvs(), *(kv for kv in found if kv not in record.kvs())]
    unit = f" {metric.unit}" if metric.unit else ""
    return Chart(
        title=metric.title,
        note="",
        x_title="seconds since the setting started",
        y_title=metric.unit or "count",
        x_ticks=[Label(px(x(tick)), f"{tick:g}") for tick in x_steps if tick <= max(last, 1.0)],
        y_ticks=[Label(px(y(tick)), f"{tick:,.6g}{unit}") for tick in y_steps],
        series=[_series(i, kv, found[kv], x, y) for i, kv in enumerate(order) if kv in found],
        head=["KV setting", "readings", "mean", "highest"],
        table=[_line(kv, found[kv], unit) for kv in order if kv in found],
    )


def _series(index: int, kv: str, points: Sequence[tuple[float, float]], x: Scale, y: Scale) -> Series:
    return Series(kv, series_color(index), "", polyline([(x(clock), y(value)) for clock, value in _thinned(points)]))


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most some hundred points: of each stretch of time the highest, so that peaks stay."""
    size = -(-len(points) // _MOST_POINTS)
    return [max(points[start : start + size], key=lambda p: p[1]) for start in range(0, len(points), size)]


def _line(kv: str, points: Sequence[tuple[float, float]], unit: str) -> list[str]:
    values = [value for _, value in points]
    return [kv, f"{len(values):,}", f"{sum(values) / len(values):,.4g}{unit}", f"{max(values):,.4g}{unit}"]
