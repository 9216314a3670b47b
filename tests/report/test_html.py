from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from niah.errors import StoreError
from niah.report.data.asked import setting_lines
from niah.report.page.html import render_report, write_report
from niah.store.read import RunRecord
from niah.store.schema import Row
from tests.helpers.known import known

VOID = {"meta", "img", "br", "link", "input", "hr", "wbr"}
CHROMIUM = shutil.which("chromium")


class Page(HTMLParser):
    """Checks that every element is closed in its place, and collects what the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self.ids: list[str | None] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self.open and self.open[-1] == "script" else self.words).append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


@pytest.fixture
def html(record: RunRecord) -> str:
    return render_report([record])


def test_the_page_is_balanced_and_has_each_id_once(html: str) -> None:
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    assert html.lstrip().startswith("<!DOCTYPE html>")


def test_the_summary_comes_first(html: str) -> None:
    text = Page(html).text
    places = [
        text.index(words)
        for words in (
            "Against bf16: streaming(sinks=4,window=1024) is worse",
            "int8 answers",
            "kivi2 is broken: the canary",
            "8 cells failed",
            "6 of 600 planned cells",
            "Not everything that was asked is in force for int8",
            "Measured memory is not what the formula says",
            "Verdict on each setting",
            "How far it holds",
            "Settings, asked and in force",
            "Accuracy by length and depth",
            "Difference to the reference",
            "Log-probability of the right answer",
            "Change against the reference",
            "Accuracy against length",
            "Quality against memory",
            "KV memory against length",
            "Time per cell",
            "Time to the first token",
            "Cells without an answer",
            "How it was run",
        )
    ]
    assert places == sorted(places)
    assert "6,000,000 B measured and 6,107,760 B by formula" in text
    assert "out_of_memory: 8192 tokens: out of memory" in text


def test_what_is_asked_and_in_force_stand_side_by_side(html: str) -> None:
    text = Page(html).text
    assert text.count("Not everything that was asked is in force.") == 1
    assert "v_dtype int8 ≠ bf16" in text
    assert "canary: 0 of 4 right" in text
    assert "Canary broken: 0 of 4 right where the reference has 4" in text
    assert html.count('class="differs"') == 1


def test_there_is_a_map_for_each_setting_with_shapes_for_states(html: str) -> None:
    page = Page(html)
    figures = [attrs for tag, attrs in page.tags if tag == "figure"]
    assert len([f for f in figures if f["id"].startswith("map-")]) == 4
    assert len([f for f in figures if f["id"].startswith("difference-")]) == 3
    assert [f["id"] for f in figures if f["class"] == "chart"] == [
        "curve-0-0", "curve-0-1", "memory-chart-0", "time-0-0", "time-0-1",
    ]  # fmt: skip
    assert len([f for f in figures if "broken" in f["class"]]) == 4
    # one in the key, one square without an answer, one square with some
    assert html.count('fill="url(#hatch)"') == 3
    assert html.count('fill="#fee838"') > 20
    assert page.text.count("as a table") == 19
    assert "24/24" not in page.text
    assert "4/4" not in page.text
    assert "2/4, 2 failed" in page.text
    assert "6 truncated" in page.text
    assert "not run" in page.text


def test_every_picture_has_a_name_and_a_table(html: str) -> None:
    page = Page(html)
    pictures = [attrs for tag, attrs in page.tags if tag == "svg" and attrs.get("role") == "group"]
    # four maps of accuracy and of log-probability, three differences of each, five charts
    assert len(pictures) == 19
    assert all(attrs["aria-labelledby"] in page.ids for attrs in pictures)
    assert sum(attrs.get("class") == "as-text" for tag, attrs in page.tags if tag == "details") == 19


def test_hostile_answers_stay_text(html: str) -> None:
    page = Page(html)
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert not [tag for tag, attrs in page.tags if tag == "img" or any(name.startswith("on") for name in attrs)]
    assert "<script>alert" not in html
    assert "\u2028" not in html
    data = json.loads(page.scripts[0])
    answers = [cell[data["columns"].index("answer")] for cell in data["cells"]]
    assert [
        a for a in answers if a.startswith("</script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }}")
    ]


def test_hostile_names_stay_text(record: RunRecord, cell: Callable[..., Row]) -> None:
    bad = '"><script>alert(1)</script>'
    rows = tuple(
        cell(kv=kv, trial=trial, kv_memory=record.rows[0].kv_memory, model=bad, task=bad, haystack=bad, length=length)
        for kv in ("bf16", "int8")
        for trial in range(2)
        for length in (512, 1024)
    )
    rows = tuple(replace(r, kv=bad) if r.kv == "int8" else r for r in rows)
    rows += (replace(cell(lost="failed", trial=9), error=bad, kv=bad),)
    settings = {"bf16": {}, bad: {"asked": {bad: bad}, "effective": {bad: "x"}, "canary": {"why": bad, "asked": bad}}}
    manifest = {"settings": settings, "reference": "bf16", "command": bad, "versions": {bad: bad}, "niah": bad}
    html = render_report([replace(record, rows=rows, manifest=manifest)])
    assert [attrs for tag, attrs in Page(html).tags if tag == "script"] == [
        {"type": "application/json", "id": "data"},
        {},
    ]
    assert "<script>alert" not in html


def test_nothing_is_loaded_from_anywhere(html: str) -> None:
    page = Page(html)
    links = [attrs[name] for _, attrs in page.tags for name in ("href", "src", "action", "srcset") if name in attrs]
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert "@import" not in html
    assert "http://" not in html
    assert "https://" not in html
    assert set(re.findall(r"url\(([^)]*)\)", html)) == {"#hatch"}


def test_the_content_policy_allows_this_script_only(html: str) -> None:
    page = Page(html)
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    digest = base64.b64encode(hashlib.sha256(page.scripts[-1].encode()).digest()).decode()
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"


def test_all_cells_are_in_the_page(html: str, record: RunRecord) -> None:
    data = json.loads(Page(html).scripts[0])
    assert len(data["cells"]) == len(record.rows) == 594
    cells = [dict(zip(data["columns"], cell, strict=True)) for cell in data["cells"]]
    for name in data["shared"]:
        for line in cells:
            line[name] = data["strings"][line[name]]
    row = record.rows[7]
    line = cells[7]
    assert line["cell_id"] == row.cell_id
    assert line["kv"] == row.kv
    assert line["expected"] == list(row.expected)
    assert line["logical_bytes"] == row.kv_memory.logical_bytes
    assert line["total_s"] == row.timing.total_s
    assert line["depth_real"] == pytest.approx(row.depth_real)


def test_two_thousand_cells_stay_under_a_megabyte_and_a_half(make_record: Callable[..., RunRecord]) -> None:
    record = make_record(trials=21)
    assert len(record.rows) > 2000
    assert len(render_report([record]).encode("utf-8", "replace")) < 700_000
    for text in ("x" * 5000, "é" * 5000, "漢" * 300):
        chatty = tuple(replace(r, answer=text, reasoning=text, why=f"{r.cell_id}{text}") for r in record.rows)
        assert len(render_report([replace(record, rows=chatty)]).encode("utf-8", "replace")) < 1_500_000


def test_several_runs_are_compared_with_the_first(record: RunRecord, make_record: Callable[..., RunRecord]) -> None:
    from pathlib import Path

    html = render_report([record, make_record(trials=3, path=Path("results/second"))])
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    assert "Differences between runs" in page.text
    assert "int8 in second minus 2026-11-29-smollm2-transformers-abc123" in page.text
    assert [a["href"] for tag, a in page.tags if tag == "a"][1:3] == ["#run-0", "#run-1"]
    assert json.loads(page.scripts[0])["runs"] == ["2026-11-29-smollm2-transformers-abc123", "second"]


@pytest.mark.parametrize("manifest", [{}, {"settings": {"bf16": {"asked": 3, "canary": None}}, "plan": 3, "model": []}])
def test_a_run_without_rows_or_facts_has_a_page(record: RunRecord, manifest: Any) -> None:
    text = Page(render_report([replace(record, rows=(), manifest=manifest, torn=True, bad_lines=(3, 9))])).text
    assert "left out: 3, 9." in text
    assert "The last row was cut off" in text
    assert "No KV bytes can be observed" in text


@pytest.mark.parametrize("odd", [None, 3, "x", [1, 2], {"a": {"b": 1}}, -1.5])
@pytest.mark.parametrize(
    "name", ["settings", "reference", "asked", "plan", "questions", "model", "adaptive", "started_at", "status"]
)
def test_a_damaged_manifest_has_a_page(record: RunRecord, name: str, odd: Any) -> None:
    damaged = replace(record, rows=record.rows[:8], manifest={**record.manifest, name: odd})
    assert "</html>" in render_report([damaged])


@pytest.mark.parametrize("odd", [None, 3, "x", [1, 2], -1.5])
@pytest.mark.parametrize("name", ["asked", "effective", "canary", "broken", "formula"])
def test_a_damaged_setting_has_a_page(record: RunRecord, name: str, odd: float | int | list[int] | str | None) -> None:
    counted = replace(record.rows[0], kv_memory=replace(record.rows[0].kv_memory, source="measured_blocks"))
    settings = {**record.manifest["settings"], "bf16": {name: odd}}
    damaged = replace(record, rows=(counted, *record.rows[1:8]), manifest={**record.manifest, "settings": settings})
    assert "</html>" in render_report([damaged])


def test_a_run_of_one_cell_has_a_page(record: RunRecord, cell: Callable[..., Row]) -> None:
    for row in (cell(), cell(lost="failed"), cell(length=1)):
        Page(render_report([replace(record, rows=(row,), manifest={})]))


def test_write(record: RunRecord, tmp_path: Path) -> None:
    path = write_report([record], tmp_path / "deep" / "report.html")
    Page(path.read_text(encoding="utf-8"))
    with pytest.raises(StoreError, match="cannot make"):
        write_report([record], path / "x" / "report.html")
    with pytest.raises(ValueError, match="at least one run"):
        render_report([])


def found(asked: Any, effective: Any) -> Any:
    return {line.name: (line.asked, line.effective, line.differs) for line in setting_lines(asked, effective)}


def test_setting_lines() -> None:
    lines = found(
        {"name": "x", "k_dtype": "int8", "v_dtype": "auto", "window": None, "group_size": 32, "sinks": 0, "tp": 2.0},
        {"k_dtype": "torch.bfloat16", "kv.v_dtype": "bfloat16", "window": 512, "tp": "2", "threads": 1},
    )
    assert lines == {
        "k_dtype": ("int8", "bf16", True),
        "v_dtype": ("auto", "bf16", False),
        "window": ("", "512", False),
        "group_size": ("32", "", False),
        "tp": ("2", "2", False),
        "threads": ("", "1", False),
    }


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize(
    ("hash_", "count", "drawer"),
    [
        ("", "594 of 594 cells", ""),
        ("#kv=int8&outcome=failed&sort=2+down", "8 of 594 cells", ""),
        ("#find=onerror&cell=0:int8%7C512%7C0.0%7C0", "1 of 594 cells", "int8 · 512 tokens · depth 0 %"),
    ],
)
def test_the_script_runs_in_a_browser(record: RunRecord, tmp_path: Path, hash_: str, count: str, drawer: str) -> None:
    path = write_report([record], tmp_path / "report.html")
    command = [
        known(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom", f"file://{path}{hash_}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    page = Page(done.stdout)
    assert count in page.text
    lines = sum(tag == "tr" for tag, _ in page.tags)
    assert lines > 30
    assert [attrs["id"] for tag, attrs in page.tags if tag == "dialog" and "open" in attrs] == (
        ["drawer"] if drawer else []
    )
    assert drawer in page.text
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 2
    assert "7*7" in page.text or not drawer
