"""Quality against memory, drawn with matplotlib: every setting with its interval, and the line that none beats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from niah.errors import ConfigError
from niah.report.data.comparison import ComparisonReport, point_interval
from niah.report.data.summary import human_bytes
from niah.report.figures.drawing import new_figure, save_figure
from niah.report.palette import series_color
from niah.stats.pareto import pareto_edge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".svg", ".pdf")


def edge_figure(report: ComparisonReport) -> Figure:
    """Accuracy with 95 % intervals against KV bytes per token; the line joins the Pareto edge.

    Raises:
        ConfigError: no setting has both an accuracy and observable bytes.
        MissingDependency: matplotlib is not installed.
    """
    known = [
        (point.name, point.kv_bytes_per_token, point.accuracy)
        for point in report.points
        if point.kv_bytes_per_token is not None and point.accuracy is not None
    ]
    if not known:
        raise ConfigError("no setting has both KV bytes and an accuracy to draw; leave out -o.")
    figure = new_figure(6.4, 4.2)
    ax = figure.add_subplot()
    edge = pareto_edge(report.points)
    ax.plot(
        [point.kv_bytes_per_token or 0 for point in edge],
        [point.accuracy or 0 for point in edge],
        color="#8a8a8a",
        linestyle="--",
        label="Pareto edge",
    )
    for index, (name, size, share) in enumerate(known):
        low, high = point_interval(report, name) or (share, share)
        error = [[share - low], [high - share]]
        ax.errorbar(size, share, yerr=error, fmt="o", color=series_color(index), capsize=3)
        ax.annotate(name, (size, share), textcoords="offset points", xytext=(7, 5), fontsize=8, parse_math=False)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda value, _: human_bytes(value))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.0f} %")
    ax.set_ylim(-0.03, 1.06)
    ax.margins(x=0.2)
    ax.set_xlabel("KV bytes per token")
    ax.set_ylabel("accuracy, bars: 95 % over texts")
    ax.set_title("quality against memory", fontsize=10)
    ax.legend(loc="lower right", fontsize=8)
    return figure


def save_edge(report: ComparisonReport, path: Path) -> Path:
    """Write the figure; its kind goes by the name's ending.

    Raises:
        ConfigError: another ending, or nothing to draw.
        MissingDependency: matplotlib is not installed.
        StoreError: the file cannot be written.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise ConfigError(f"{str(path)!r} must end in {', '.join(_SUFFIXES)}.")
    return save_figure(edge_figure(report), path)
