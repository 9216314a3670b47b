"""The report: one HTML file that works from disk, for ever and without a network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from niah.errors import StoreError
from niah.report.data.cells import cell_data, embedded
from niah.report.data.difference import build_difference
from niah.report.data.surroundings import Surroundings, surroundings_of
from niah.report.page.logprob import CHANGE_LIMIT, LOWEST
from niah.report.page.sections import run_view
from niah.report.page.svg import Map, difference_picture
from niah.report.palette import DIFFERENCE_LIMIT, WORSE_TO_BETTER, Palette, stops
from niah.report.text.verdict import VerdictLine, headline, run_comparisons, verdict_lines
from niah.store.folder import write_atomic
from niah.store.read import RunRecord


@dataclass(frozen=True, slots=True)
class AcrossView:
    """A later run against the first one."""

    name: str
    headline: str
    verdicts: list[VerdictLine]
    notes: list[str]
    maps: list[Map]


def write_report(
    records: Sequence[RunRecord],
    path: Path,
    palette: Palette = "cividis",
    around: Sequence[Surroundings] | None = None,
) -> Path:
    """Write the report of one or more runs as one file; returns its path.

    Args:
        records: the first one is what later runs are compared with.
        around: needles in their surroundings, one for each record; read or built again when None.

    Raises:
        StoreError: the file cannot be written.
        ValueError: there is no record.
    """
    if path.is_dir():
        raise StoreError(
            f"{str(path)!r} is a folder. Name the file to write, for instance {str(path / 'report.html')!r}."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise StoreError(f"cannot make {str(path.parent)!r}: {err.strerror}. Choose another place with -o.") from err
    known = [surroundings_of(record) for record in records] if around is None else around
    # a model may end in half a surrogate pair, which no file can hold
    write_atomic(path, render_report(records, palette, known).encode("utf-8", "replace"))
    return path


def render_report(
    records: Sequence[RunRecord], palette: Palette = "cividis", around: Sequence[Surroundings] = (), home: str = ""
) -> str:
    """The report as one HTML document without any outside reference.

    Args:
        around: needles in their surroundings, as far as they are known.
        home: where a link back leads, for a page that is served; none in a file.

    Raises:
        ValueError: there is no record.
    """
    if not records:
        raise ValueError("a report needs at least one run")
    script = template_text("report.js")
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            runs=[run_view(record, palette) for record in records],
            across=_across(records),
            columns=list(_HEADINGS),
            data=embedded(cell_data(records, around)),
            notes=list(dict.fromkeys(found.note for found in around if found.note)),
            home=home,
            script=script,
            script_hash=script_policy(script),
            style=template_text("report.css"),
            share_stops=stops(palette),
            difference_stops=WORSE_TO_BETTER,
            difference_limit=round(DIFFERENCE_LIMIT * 100),
            logprob_lowest=LOWEST,
            logprob_limit=CHANGE_LIMIT,
        )
    )


_HEADINGS = (
    "KV setting", "state", "accuracy", "95 % interval", "n", "vs. reference", "KV bytes/token", "of 16 bit",
    "failed", "other",
)  # fmt: skip


@cache
def environment() -> Environment:
    """Templates with everything escaped that is not marked as safe by a template itself."""
    loader = PackageLoader("niah.report.page", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@cache
def template_text(name: str) -> str:
    """A script or style sheet of the templates folder."""
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def script_policy(script: str) -> str:
    """The base64 SHA-256 by which a content security policy allows a script."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _across(records: Sequence[RunRecord]) -> list[AcrossView]:
    """Later runs against the first, for every setting that both have."""
    base = records[0]
    views = []
    for record in records[1:]:
        comparisons, notes = run_comparisons(base, record)
        maps = []
        for kv in (kv for kv in record.kvs() if kv in base.kvs()):
            broken = record.broken(kv) or base.broken(kv)
            difference = build_difference(record.rows, base.rows, kv, kv, broken=broken)
            if difference.cells:
                named = replace(difference, kv=f"{kv} in {record.path.name}", reference=base.path.name)
                maps.append(difference_picture(named))
        said = headline(comparisons, base.path.name) or f"Nothing can be compared with {base.path.name}."
        views.append(AcrossView(record.path.name, said, verdict_lines(comparisons), notes, maps))
    return views
