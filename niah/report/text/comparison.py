"""A comparison in words and tables: for a terminal, for Markdown, and as a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from niah.errors import MissingDependency
from niah.grid import counted, length_label
from niah.redact import printable
from niah.report.data.comparison import Compared, ComparisonReport
from niah.report.data.summary import percent
from niah.stats.compare import Comparison
from niah.stats.effective import EffectiveLength
from niah.stats.intervals import Interval
from niah.stats.power import MIN_CONTEXTS
from niah.stats.ushape import Contrast

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table


HEADINGS = (
    *("new", "base", "pairs", "base right", "new right", "Δ points", "95 % interval"),
    *("p", "Δ log-prob", "95 % interval", "verdict"),
)
_BANDS = {"start": "start (< 25 %)", "middle": "middle (25–75 %)", "end": "end (> 75 %)"}
# settings in force that belong to the cache are what is compared; beyond these few, a list goes to --json
_SHOWN_DIFFERENCES = 12


def signed_points(share: float) -> str:
    """A difference of shares in points, one digit: -0.0167 is ``−1.7``."""
    text = f"{share * 100:+.1f}".replace("-", "−")
    return "0.0" if text in ("+0.0", "−0.0") else text


def points_interval(interval: Interval | None) -> str:
    """Both ends in points: ``−5.0 to +2.4``."""
    return "–" if interval is None else f"{signed_points(interval.low)} to {signed_points(interval.high)}"


def signed_nats(value: float | None) -> str:
    """A change of log-probability with its sign, to a thousandth: what is claimed of it must not read as zero."""
    if value is None:
        return "–"
    text = f"{value:+.3f}".replace("-", "−")
    return "0.000" if text in ("+0.000", "−0.000") else text


def nats_interval(interval: Interval | None) -> str:
    """Both ends in nats: ``−0.058 to −0.012``."""
    return "–" if interval is None else f"{signed_nats(interval.low)} to {signed_nats(interval.high)}"


def verdict_words(item: Comparison) -> str:
    """The verdict as tables say it, with the rule that decided it where that is the number of texts."""
    if item.verdict == "too few to say" and not item.broken and item.pairs and item.few_contexts:
        return f"too few to say ({item.contexts} of {MIN_CONTEXTS} contexts)"
    return item.verdict


def p_text(p: float | None) -> str:
    """A p-value as people read it: below 0.001 is said so."""
    return "–" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def sentence(item: Comparison) -> str:
    """The verdict on one setting with its figures."""
    new, base = printable(item.new), printable(item.base)
    if item.accuracy_base is None or item.accuracy_new is None or item.delta is None:
        return f"{new} and {base} have no answered pair."
    head = {
        "better": f"{new} is better than {base}",
        "worse": f"{new} is worse than {base}",
        "equivalent": f"{new} is equivalent to {base} (within {item.margin * 100:g} points)",
        "too few to say": f"too few pairs to say whether {new} differs from {base}",
    }[item.verdict]
    if item.verdict == "too few to say" and item.few_contexts:
        head = f"too few contexts ({item.contexts}, and a verdict needs {MIN_CONTEXTS}) to say whether {new} differs "
        head += f"from {base}"
    if item.broken:
        head = f"{new} and {base} are not interpreted: a canary failed"
    text = (
        f"{head}: {percent(item.accuracy_new)} against {percent(item.accuracy_base)} right on "
        f"{counted(item.pairs, 'pair')}, "
        f"{signed_points(item.delta)} points (95 % interval {points_interval(item.ci)})"
    )
    if item.logprob_delta is not None:
        text += f"; log-probability of the answer {signed_nats(item.logprob_delta)} ({nats_interval(item.logprob_ci)})"
    return f"{text[0].upper() + text[1:] if item.verdict == 'too few to say' and not item.broken else text}."


def verdict_line(item: Comparison) -> list[str]:
    """The cells of one line under ``HEADINGS``; a broken setting's figures are bracketed.

    The p-value is the one that the verdict goes by: corrected for all that was compared together.
    """
    values = [
        f"{item.pairs:,}",
        "–" if item.accuracy_base is None else percent(item.accuracy_base),
        "–" if item.accuracy_new is None else percent(item.accuracy_new),
        "–" if item.delta is None else signed_points(item.delta),
        points_interval(item.ci),
        p_text(item.p if item.p_holm is None else item.p_holm),
        signed_nats(item.logprob_delta),
        nats_interval(item.logprob_ci),
    ]
    if item.broken:
        values = [value if value == "–" else f"({value})" for value in values]
    verdict = "BROKEN, not interpreted" if item.broken else verdict_words(item)
    return [printable(item.new), printable(item.base), *values, verdict]


def part_lines(item: Compared) -> list[list[str]]:
    """Lines of the table by length and depth band: what, then ``HEADINGS`` from ``pairs`` on."""
    parts = [(length_label(length), part) for length, part in item.by_length]
    parts += [(_BANDS[band], part) for band, part in item.by_band]
    lines = [[label, *verdict_line(part)[2:]] for label, part in parts]
    return [*lines, ["all", *verdict_line(item.total)[2:]]]


def edge_lines(report: ComparisonReport) -> list[list[str]]:
    """Lines of quality against memory: setting, KV bytes per token, accuracy, and whether none beats it."""
    edge = report.edge
    return [
        [
            printable(point.name),
            "unknown" if point.kv_bytes_per_token is None else f"{point.kv_bytes_per_token:,.1f}",
            "not interpreted" if point.accuracy is None else percent(point.accuracy),
            "on the edge" if point.name in edge else "",
        ]
        for point in report.points
    ]


def shape_sentences(item: Compared) -> list[str]:
    """U-shape of both sides with its change, and the effective lengths."""
    old, now, change = item.shapes()
    lines = []
    for what, key in (
        ("U-shape (ends minus middle)", "index"),
        ("primacy slope", "primacy"),
        ("recency slope", "recency"),
    ):
        parts: list[Contrast | None] = [getattr(shape, key) for shape in (old, now, change)]
        if all(part is not None for part in parts):
            base, new, delta = (_contrast(part) for part in parts)
            lines.append(f"{what}: {base} to {new}, change {delta} points")
    far_old, far_now = item.effective()
    lines.append(f"effective length: {effective_text(far_old)} to {effective_text(far_now)}")
    return lines


def _contrast(part: Contrast | None) -> str:
    return "–" if part is None else f"{signed_points(part.value)} ({points_interval(part.ci)})"


def effective_text(far: EffectiveLength) -> str:
    """Effective length in words, with the reason where there is none."""
    if far.length is not None:
        return length_label(far.length)
    if far.too_few:
        return f"not known ({far.trials_needed} trials a cell could show {far.bar * 100:g} %)"
    limit = far.limit
    if limit is None:
        return "none"
    where = f"{length_label(limit.length)}, depth {limit.depth * 100:.4g} %: {limit.hits} of {limit.trials} right"
    return f"none ({where} does not show {far.bar * 100:g} %)"


def verdict_table(report: ComparisonReport) -> Table:
    """One line a comparison."""
    rows = [verdict_line(item) for item in report.comparisons]
    return _table(HEADINGS, rows, left=(0, 1, 10))


def part_table(item: Compared) -> Table:
    """One comparison by length and depth band; p-values are corrected within each."""
    return _table(("where", *HEADINGS[2:]), part_lines(item), left=(0, 9))


def edge_table(report: ComparisonReport) -> Table:
    """Quality against memory."""
    return _table(("KV setting", "KV B/token", "accuracy", "Pareto"), edge_lines(report), left=(0, 3))


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]], left: Sequence[int]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold", box=None, padding=(0, 1))
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index in left else "right", no_wrap=True)
    for line in lines:
        # Text and not str: rich would read markup in a setting's name
        table.add_row(*(Text(value) for value in line))
    return table


def difference_lines(item: Compared) -> list[str]:
    """What else differed, a line each, cut where there is much."""
    lines = [printable(differs.sentence()) for differs in item.differs]
    more = len(lines) - _SHOWN_DIFFERENCES
    return lines if more <= 0 else [*lines[:_SHOWN_DIFFERENCES], f"and {more} more (see --json)"]


def markdown(report: ComparisonReport) -> str:
    """Verdicts, tables, caveats and what else differed, for a pull request."""
    lines = ["### KV settings compared", ""]
    lines += [f"- {escaped(sentence(item))}" for item in report.comparisons]
    rows = [verdict_line(item) for item in report.comparisons]
    lines += ["", *_markdown_table(HEADINGS, rows)]
    for item in report.items:
        lines += ["", f"<details><summary>{escaped(item.total.new)} by length and depth</summary>", ""]
        lines += _markdown_table(("where", *HEADINGS[2:]), part_lines(item))
        lines += ["", *(f"- {escaped(line)}" for line in shape_sentences(item)), "", "</details>"]
    if any(point.kv_bytes_per_token is not None for point in report.points):
        lines += ["", "**Quality against memory**", ""]
        lines += _markdown_table(("KV setting", "KV bytes/token", "accuracy", "Pareto"), edge_lines(report))
    caveats = [f"- {escaped(item.total.new)}: {escaped(text)}" for item in report.items for text in item.total.caveats]
    caveats += [f"- {escaped(note)}" for note in (*report.notes, *filter(None, [report.corrected]))]
    if caveats:
        lines += ["", "**Read with care**", "", *caveats]
    for item in report.items:
        if item.differs:
            lines += ["", f"<details><summary>What else differed: {escaped(item.total.new)}</summary>", ""]
            lines += [*(f"- {escaped(line)}" for line in difference_lines(item)), "", "</details>"]
    return "\n".join(lines) + "\n"


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(headings)} |", f"|{'|'.join(' --- ' for _ in headings)}|"]
    return [*lines, *(f"| {' | '.join(escaped(value) for value in row)} |" for row in rows)]


def escaped(text: str) -> str:
    """Names come from files: what Markdown or HTML would act on is escaped."""
    text = printable(text)
    for char in "\\`*_[]|~#":
        text = text.replace(char, f"\\{char}")
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")


def comparison_frame(report: ComparisonReport) -> pd.DataFrame:
    """One line a comparison.

    Raises:
        MissingDependency: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as err:
        raise MissingDependency("pandas", "report", "A data frame of comparisons") from err
    lines = []
    for item in report.comparisons:
        data = item.to_json()
        for name in ("ci", "logprob_ci"):
            low, high = data.pop(name) or (None, None)
            data |= {f"{name}_low": low, f"{name}_high": high}
        lines.append(data | {"caveats": "; ".join(item.caveats)})
    return pd.DataFrame(lines)
