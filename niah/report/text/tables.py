"""Heatmaps and summaries for a terminal: with color where it is wanted, readable without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from niah.grid import length_label
from niah.redact import printable
from niah.report.data.grid import BROKEN_LABEL, FEW_TRIALS, OFF_LABEL, CellSummary, Grid
from niah.report.data.summary import SettingSummary, percent
from niah.report.palette import RGB, Palette, share_color
from niah.stats.clustered import LEANING
from niah.stats.power import MIN_CONTEXTS

if TYPE_CHECKING:
    from rich.table import Table

_CELL = 7
_LABEL = 8
_MARGIN = 22
_RESET = "\x1b[0m"


def terminal_heatmap(grid: Grid, color: bool, width: int, palette: Palette = "cividis") -> str:
    """A heatmap as lines of text that fit ``width`` columns: accuracy in percent, depth down, length across.

    Marks beside a number say what color cannot: ``·`` fewer than five answers, ``F`` failed, ``×`` truncated, ``-``
    refused, ``~`` a needle that does not lie at its depth; a blank was not run. The margins hold accuracy, 95 %
    interval (robust to questions of one text failing together) and number of answers.
    Where the lengths do not fit side by side, they continue in a further block below.

    Args:
        color: put ANSI 24-bit color behind the numbers.
        width: columns of the terminal.
    """
    lines = [printable(grid.title)]
    if grid.broken:
        lines.append(f"{BROKEN_LABEL}: do not read this map as a cost of the setting")
    if not grid.lengths:
        return "\n".join([*lines, "no cell has been run yet"])
    columns = max(1, (width - _LABEL - _MARGIN) // _CELL)
    blocks = [grid.lengths[start : start + columns] for start in range(0, len(grid.lengths), columns)]
    for number, lengths in enumerate(blocks):
        lines += ["", *_block(grid, lengths, color, palette, margin=number == len(blocks) - 1)]
    total = grid.total()
    lines += ["", f"all {_margin(total)} · {_outcomes(total)}", _key(grid)]
    return "\n".join(line.rstrip() for line in lines)


def _block(grid: Grid, lengths: Sequence[int], color: bool, palette: Palette, *, margin: bool) -> list[str]:
    lines = [f"{'depth %':<{_LABEL}}" + "".join(f"{length_label(length):^{_CELL}}" for length in lengths)]
    for depth in grid.depths:
        cells = "".join(_square(grid, length, depth, color, palette) for length in lengths)
        end = f"  {_margin(grid.at_depth(depth))}" if margin else ""
        lines.append(f"{depth * 100:>6.4g}  {cells}{end}")
    columns = [grid.at_length(length) for length in lengths]
    for label, values in (
        ("all", [_short(cell.share) for cell in columns]),
        ("low", [_short(cell.interval.low if cell.answered else None) for cell in columns]),
        ("high", [_short(cell.interval.high if cell.answered else None) for cell in columns]),
        ("n", [str(cell.answered) for cell in columns]),
    ):
        lines.append(f"{label:>6}  " + "".join(f"{value:^{_CELL}}" for value in values))
    return lines


def _square(grid: Grid, length: int, depth: float, color: bool, palette: Palette) -> str:
    cell = grid.cells.get((length, depth))
    if cell is None:
        return " " * _CELL
    marks = "".join(
        mark
        for mark, shown in (("·", cell.few), ("F", cell.failed), ("×", cell.truncated), ("-", cell.refused))
        if shown
    )
    marks += "~" * (grid.off_depth(length, depth) is not None)
    number = "" if cell.share is None else _short(cell.share)
    text = f"{number + marks:^{_CELL}}"
    if not color or cell.share is None:
        return text
    background = share_color(cell.share, palette)
    return f"{_ansi(background)}{text}{_RESET}"


def _ansi(background: RGB) -> str:
    ink = "255;255;255" if background.ink == "#ffffff" else "0;0;0"
    return f"\x1b[48;2;{background.red};{background.green};{background.blue}m\x1b[38;2;{ink}m"


def _short(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.0f}"


def _margin(cell: CellSummary) -> str:
    if cell.share is None:
        return "–    n=0"
    interval = f"[{_short(cell.interval.low)}–{_short(cell.interval.high)}]"
    return f"{_short(cell.share):>3} {interval:<8} n={cell.answered}"


def _outcomes(total: CellSummary) -> str:
    counts = {"failed": total.failed, "truncated": total.truncated, "refused": total.refused}
    parts = [f"{total.answered:,} answered", *(f"{n:,} {name}" for name, n in counts.items() if n)]
    return ", ".join(parts)


def _key(grid: Grid) -> str:
    cells = grid.cells.values()
    marks = [
        (f"· fewer than {FEW_TRIALS} answers", any(cell.few for cell in cells)),
        ("F failed", any(cell.failed for cell in cells)),
        ("× truncated", any(cell.truncated for cell in cells)),
        ("- refused", any(cell.refused for cell in cells)),
        (f"over fewer than {MIN_CONTEXTS} texts a correlation of {LEANING:g} is assumed", _any_assumed(grid)),
        (f"~ {OFF_LABEL}", any(grid.off_depth(*place) is not None for place in grid.cells)),
        ("blank not run", len(grid.cells) < len(grid.lengths) * len(grid.depths)),
    ]
    shown = [text for text, seen in marks if seen]
    return "accuracy in %, 95 % interval over texts" + (f"; {', '.join(shown)}" if shown else "")


def _any_assumed(grid: Grid) -> bool:
    return any(grid.at_length(length).is_assumed for length in grid.lengths)


def summary_table(settings: Sequence[SettingSummary], title: str = "") -> Table:
    """One line a KV setting: accuracy, interval, n, change, KV bytes per token, size against 16 bit, what went wrong.

    A broken setting's accuracy is bracketed, because it measures the fault and not the setting.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=printable(title) or None, title_justify="left", header_style="bold", box=None, padding=(0, 1))
    table.add_column("KV setting", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for heading in ("accuracy", "95 % interval", "n", "vs. ref.", "KV B/token", "of 16 bit", "failed", "other"):
        table.add_column(heading, justify="right", no_wrap=True)
    for item in settings:
        # Text and not str: rich would read markup in a setting's name
        table.add_row(*(Text(value) for value in summary_line(item)))
    return table


def summary_line(item: SettingSummary) -> list[str]:
    """The cells of one line of ``summary_table``, as text; ``–`` where there is nothing to say."""
    total = item.total
    accuracy = "–" if total.share is None else percent(total.share)
    interval = "–" if total.share is None else f"{percent(total.interval.low)}–{percent(total.interval.high)}"
    change = "–" if item.delta is None else f"{_signed(item.delta)} pt"
    state = "BROKEN" if item.broken else "reference" if item.is_reference else "ok"
    return [
        printable(item.kv),
        state,
        f"({accuracy})" if item.broken else accuracy,
        interval,
        f"{total.answered:,}",
        f"({change})" if item.broken and item.delta is not None else change,
        "unknown" if item.kv_bytes_per_token is None else f"{item.kv_bytes_per_token:,.1f}",
        "–" if item.ratio is None else f"{item.ratio * 100:.1f} %",
        f"{total.failed:,}",
        f"{total.truncated + total.refused:,}",
    ]


def _signed(share: float) -> str:
    # a change that rounds to nothing is +0.0, not −0.0, whatever its sign was
    return f"{share * 100:+z.1f}".replace("-", "−")
