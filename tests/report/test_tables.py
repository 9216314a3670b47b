from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from niah.report.data.grid import build_grid, record_grid
from niah.report.data.summary import summaries
from niah.report.palette import CIVIDIS, RGB, difference_color, file_stem, share_color
from niah.report.text.tables import summary_line, summary_table, terminal_heatmap
from niah.store.read import RunRecord
from niah.store.schema import Row

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def test_the_terminal_heatmap_in_plain_text(record: RunRecord) -> None:
    lines = terminal_heatmap(record_grid(record, "int8"), color=False, width=100).splitlines()
    assert lines[0] == "SmolLM2-135M-Instruct · int8 · multikey · n = 136"
    assert lines[2].split() == ["depth", "%", "512", "1k", "2k", "4k", "8k"]
    depth_25 = lines[4]
    assert depth_25.split()[:6] == ["25", "100", "100", "100", "50·F", "83"]
    assert "n=28" in depth_25
    assert lines[5].split()[5] == "F"
    assert lines[11].split() == ["n", "30", "30", "30", "28", "18"]
    assert lines[-2].endswith("n=136 · 136 answered, 8 failed")
    assert lines[-1] == ("accuracy in %, 95 % interval over texts; · fewer than 5 answers, F failed, blank not run")
    assert "\x1b" not in "".join(lines)


def test_color_changes_the_looks_only(record: RunRecord) -> None:
    grid = record_grid(record, "bf16")
    plain = terminal_heatmap(grid, color=False, width=100)
    colored = terminal_heatmap(grid, color=True, width=100)
    assert "\x1b[48;2;254;232;56m\x1b[38;2;0;0;0m" in colored  # black on the brightest cividis
    assert [line.rstrip() for line in ANSI.sub("", colored).splitlines()] == plain.splitlines()
    assert "×" in plain


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_it_fits_narrow_terminals(record: RunRecord, width: int) -> None:
    text = terminal_heatmap(record_grid(record, "int8"), color=False, width=width)
    blocks = [line for line in text.splitlines() if line.startswith("depth %")]
    lengths = [word for line in blocks for word in line.split()[2:]]
    assert lengths == ["512", "1k", "2k", "4k", "8k"]
    if width >= 40:
        assert max(len(line) for line in text.splitlines() if line.lstrip()[:1].isdigit()) <= width


def test_broken_and_empty_maps_say_so(record: RunRecord) -> None:
    assert "BROKEN: canary failed" in terminal_heatmap(record_grid(record, "kivi2"), color=False, width=80)
    assert "no cell has been run yet" in terminal_heatmap(build_grid([], "int8"), color=False, width=80)


def test_control_characters_do_not_reach_the_terminal(cell: Callable[..., Row]) -> None:
    grid = build_grid([cell(model="m\x1b]0;owned\x07")], "int8")
    assert "\x1b" not in terminal_heatmap(grid, color=False, width=80)


def rendered(table: Table, width: int) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width)
    console.print(table)
    return out.getvalue()


def test_the_summary_table(record: RunRecord) -> None:
    text = rendered(summary_table(summaries(record), "a run"), 130)
    lines = {line.split()[0]: line for line in text.splitlines() if line.split()}
    assert "reference" in lines["bf16"]
    assert "23,040.0" in lines["bf16"]
    assert "53.1 %" in lines["int8"]
    assert lines["int8"].split()[-2:] == ["8", "0"]
    assert "BROKEN" in lines["kivi2"]
    assert re.search(r"\(\d+\.\d %\)", lines["kivi2"])
    assert re.search(r"−\d+\.\d pt", lines["streaming(sinks=4,window=1024)"])


def test_names_are_not_read_as_markup(record: RunRecord) -> None:
    item = replace(summaries(record)[0], kv="window[bold]x[/bold]", kv_bytes_per_token=None, ratio=None)
    text = rendered(summary_table([item]), 130)
    assert "window[bold]x[/bold]" in text
    assert "unknown" in text


def test_colors_keep_to_a_fixed_scale_and_stay_readable() -> None:
    assert share_color(0.0).hex == CIVIDIS[0]
    assert share_color(1.0).hex == CIVIDIS[-1]
    assert share_color(7.0) == share_color(1.0)
    assert difference_color(0.0).hex == "#f6f6f7"
    assert difference_color(-0.5) == difference_color(-1.0)
    assert RGB(0, 0, 0).ink == "#ffffff"
    assert RGB(255, 255, 255).ink == "#000000"


def test_text_has_contrast_on_every_color() -> None:
    def luminance(color: Any) -> Any:
        parts = [c / 255 for c in (color.red, color.green, color.blue)]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    colors = [share_color(n / 200) for n in range(201)] + [difference_color(n / 100 - 1) for n in range(201)]
    for color in colors:
        back, ink = luminance(color), 1.0 if color.ink == "#ffffff" else 0.0
        assert (max(back, ink) + 0.05) / (min(back, ink) + 0.05) >= 4.5


def test_lightness_grows_all_the_way() -> None:
    shades = [share_color(n / 50) for n in range(51)]
    grey = [0.2126 * c.red + 0.7152 * c.green + 0.0722 * c.blue for c in shades]
    assert grey == sorted(grey)


@pytest.mark.parametrize(
    ("kv", "stem"),
    [
        ("streaming(sinks=4)", "streaming-sinks-4"),
        ("streaming(sinks=4,window=512)", "streaming-sinks-4-window-512"),
        ("fp8_e4m3", "fp8_e4m3"),
        ("press:knorm(ratio=0.5)", "press-knorm-ratio-0.5"),
        ("../..", "kv"),
        ("a/b", "a-b"),
    ],
)
def test_file_names(kv: str, stem: str) -> None:
    assert file_stem(kv) == stem


def test_a_change_that_rounds_to_nothing_has_no_minus(record: RunRecord) -> None:
    item = replace(summaries(record)[1], delta=-0.0004, broken=False)
    assert summary_line(item)[5] == "+0.0 pt"
    assert summary_line(replace(item, delta=-0.0006))[5] == "−0.1 pt"
