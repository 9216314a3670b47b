"""A run in other people's formats: one line a cell as CSV, JSON lines or parquet, a JUnit file, a Markdown table."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

from niah.errors import ConfigError, near
from niah.grid import length_label
from niah.report.data.summary import few_texts, summaries
from niah.report.text.comparison import escaped
from niah.store.read import RunRecord, flat_columns, flat_row, parquet_bytes
from niah.store.schema import Row

# what XML 1.0 cannot hold in any form: control characters and halves of surrogate pairs
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# a spreadsheet takes what begins so for a formula, and runs it, whatever blanks stand before; the wide forms too
_FORMULA_STARTS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
_SKIPPED = ("\t", "\r", "\n")


def export(record: RunRecord, name: str) -> bytes:
    """The run in the format of that name.

    Raises:
        ConfigError: no such format.
        MissingDependency: parquet needs pandas and pyarrow.
    """
    if name not in FORMATS:
        raise ConfigError(f"no format named {name!r}.{near(name, FORMATS)}")
    return FORMATS[name](record)


def _csv(record: RunRecord) -> bytes:
    lines = [flat_row(row) for row in record.rows]
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    names = flat_columns()
    writer.writerow(names)
    writer.writerows([_cell(line[name]) for name in names] for line in lines)
    return out.getvalue().encode()


def _cell(value: Any) -> Any:
    """A value as a spreadsheet shows it: lists as JSON, and what a model said never as a formula."""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False).replace("\0", "")
    if isinstance(value, str):
        text = value.replace("\0", "")
        # what is not printable is skipped like a blank: some programs drop it when they read
        seen = "".join(char for char in text if char.isprintable()).lstrip()
        return f"'{text}" if text.startswith(_SKIPPED) or seen.startswith(_FORMULA_STARTS) else text
    return value


def _jsonl(record: RunRecord) -> bytes:
    return b"".join(json.dumps(row.to_json(), ensure_ascii=True).encode() + b"\n" for row in record.rows)


def _junit(record: RunRecord) -> bytes:
    """A suite a KV setting and a case a cell: a wrong answer fails, a failure is an error, the rest is skipped."""
    root = ET.Element("testsuites", name=_xml(record.path.name))
    for kv in record.kvs():
        rows = [row for row in record.rows if row.kv == kv]
        suite = ET.SubElement(root, "testsuite", name=_xml(kv), tests=str(len(rows)))
        suite.set("failures", str(sum(row.correct is False for row in rows)))
        suite.set("errors", str(sum(row.outcome == "failed" for row in rows)))
        suite.set("skipped", str(sum(row.outcome in ("refused", "truncated") for row in rows)))
        if record.broken(kv):
            properties = ET.SubElement(suite, "properties")
            ET.SubElement(properties, "property", name="broken", value="the setting failed its canary")
        for row in rows:
            suite.append(_case(row))
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _case(row: Row) -> ET.Element:
    name = f"{length_label(row.length)} tokens, depth {row.depth:.0%}, trial {row.trial}"
    case = ET.Element("testcase", classname=_xml(f"{row.model}.{row.kv}"), name=_xml(f"{name} [{row.cell_id}]"))
    case.set("time", f"{row.timing.total_s:.3f}")
    if row.correct is False:
        said = f"expected {' or '.join(row.expected)}, answered {row.answer!r}"
        ET.SubElement(case, "failure", message=_xml(row.why)).text = _xml(said)
    elif row.outcome == "failed":
        ET.SubElement(case, "error", type=_xml(row.error_kind), message=_xml(row.error or ""))
    elif row.outcome != "answered":
        ET.SubElement(case, "skipped", message=_xml(row.error or row.outcome))
    return case


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _markdown(record: RunRecord) -> bytes:
    head = ("KV setting", "accuracy", "95 % interval", "n", "KV B/token", "state")
    lines = [head, ("---",) * len(head)]
    found = summaries(record)
    for summary in found:
        total = summary.total
        known = total.share is not None
        per_token = summary.kv_bytes_per_token
        lines.append(
            (
                escaped(summary.kv),
                f"{total.share:.1%}" if known and total.share is not None else "none",
                f"{total.interval.low:.1%} to {total.interval.high:.1%}" if known else "",
                str(total.answered),
                "unknown" if per_token is None else f"{per_token:,.0f}",
                "broken" if summary.broken else "ok",
            )
        )
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return (table + "".join(f"\n{escaped(sentence)}\n" for sentence in few_texts(found))).encode()


FORMATS: dict[str, Callable[[RunRecord], bytes]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "junit": _junit,
    "markdown": _markdown,
    "parquet": parquet_bytes,
}
