"""The report in a real browser: from disk, without a network, with a hostile model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from niah.report.data.surroundings import Surrounding, Surroundings
from niah.report.page.html import write_report
from niah.store.read import RunRecord
from tests.helpers.browser import chromium, needs_chromium, tab
from tests.helpers.reports import HOSTILE, make_rows, manifest

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four settings, one broken; failed, truncated and missing cells, sampled metrics, hostile texts, needles shown."""
    folder = tmp_path_factory.mktemp("results") / "2026-11-29-smollm2-transformers-abc123"
    folder.mkdir()
    start = datetime(2026, 11, 29, tzinfo=UTC)
    samples = [
        {"at": (start + timedelta(seconds=n)).isoformat(), "kv": kv, "kv_cache_usage_perc": 0.1 + n / 100,
         "num_requests_running": n % 3, "prefix_cache_hits": 1000 + 50 * n}
        for kv in ("bf16", "int8") for n in range(40)
    ]  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    rows = tuple(replace(row, answer_prefix=True) for row in make_rows())
    around = {
        row.pair_id: Surrounding(
            f"before {HOSTILE} ",
            f"The number is {row.expected[0]}.",
            " after",
            f"What is it? {HOSTILE}",
            "It is",
            matches=True,
        )
        for row in rows
        if row.trial != 1
    }
    known = Surroundings(around, "left out for 25 cells of this large run")
    return write_report([RunRecord(folder, manifest(), rows)], folder / "report.html", around=[known])


def test_nothing_is_asked_for_and_nothing_complains(browser: Any, report: Path, tmp_path: Path) -> None:
    with tab(browser, offline=True) as found:
        found.page.goto(report.as_uri())
        assert found.text(".verdict").startswith("Against bf16: streaming(sinks=4,window=1024) is worse by")
        assert found.text("#count") == "594 of 594 cells"
        assert found.page.locator("script").count() == 2
        titles = found.page.locator("figure.chart figcaption").all_inner_texts()
        assert {"Quality against memory", "Time per cell", "KV pool in use", "Requests running"} <= set(titles)
        assert "Tokens taken from the prefix cache" in titles
        assert found.page.locator(".sq.pale").count() > 20
        found.page.screenshot(path=tmp_path / "report.png", full_page=True)
        assert found.complaints == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (900, "dark")])
def test_it_fits_a_narrow_window(browser: Any, report: Path, tmp_path: Path, width: int, scheme: str) -> None:
    with tab(browser, offline=True, width=width, scheme=scheme) as found:
        found.page.goto(report.as_uri())
        found.page.screenshot(path=tmp_path / f"report-{width}-{scheme}.png", full_page=True)
        assert found.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_square_opens_its_cells_and_the_address_remembers(browser: Any, report: Path, tmp_path: Path) -> None:
    with tab(browser, offline=True) as found:
        page = found.page
        page.goto(report.as_uri())
        page.locator('svg[data-kv="int8"] .sq[data-at="512,0.0"]').first.click()
        drawer = page.locator("#drawer")
        assert drawer.is_visible()
        assert page.locator("#drawer-title").inner_text() == "int8 · 512 tokens · depth 0 %"
        # the wrong answer comes first, and its markup is text
        assert page.locator("#drawer .badge").first.inner_text() == "wrong"
        answer = page.locator("#drawer pre strong").inner_text()
        assert answer.startswith("</script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }}")
        assert page.locator("#drawer img, #drawer script").count() == 0
        assert page.locator("#drawer mark").inner_text().startswith("The number is ")
        assert "It is" in page.locator("#drawer pre .muted").inner_text()
        assert found.text("#count") == "6 of 594 cells"
        siblings = page.locator("#drawer .siblings button").all_inner_texts()
        assert siblings == ["bf16", "streaming(sinks=4,window=1024)", "kivi2"]
        page.screenshot(path=tmp_path / "drawer.png")
        page.locator("#drawer .siblings button").first.click()
        assert page.locator("#drawer-title").inner_text().startswith("bf16")
        page.keyboard.press("Escape")
        assert not drawer.is_visible()
        page.locator('svg[data-kv="int8"] .sq[data-at="512,0.0"]').first.click()
        address = page.url
        assert "kv=int8" in address
        assert "cell=" in address
        assert found.complaints == []
    with tab(browser, offline=True) as found:
        found.page.goto(address)
        assert found.page.locator("#drawer").is_visible()
        assert found.text("#count") == "6 of 594 cells"


def test_a_cell_without_surroundings_and_a_failed_one(browser: Any, report: Path) -> None:
    with tab(browser, offline=True) as found:
        assert "left out for 25 cells" in (found.page.goto(report.as_uri()) and found.text("#cells .band"))
        found.page.goto(report.as_uri() + "#cell=0%3Aint8%7C512%7C0.5%7C1")
        assert found.page.locator("#drawer").is_visible()
        assert found.page.locator("#drawer mark").count() == 0
        found.page.goto(report.as_uri() + "#cell=0%3Aint8%7C8192%7C0.5%7C0")
        assert "out_of_memory: 8192 tokens" in found.text("#drawer-body")
        assert found.complaints == []


def test_filters_sorting_and_keys(browser: Any, report: Path) -> None:
    with tab(browser, offline=True) as found:
        page = found.page
        page.goto(report.as_uri())
        page.select_option("select[name=kv]", "int8")
        page.select_option("select[name=outcome]", "failed")
        assert found.text("#count") == "8 of 594 cells"
        page.get_by_role("button", name="Clear").click()
        page.fill("input[name=find]", "onerror")
        assert found.text("#count") == "1 of 594 cells"
        page.fill("input[name=find]", "")
        page.get_by_role("button", name="length").click()
        assert page.locator("#table thead th").nth(2).get_attribute("aria-sort") == "ascending"
        # arrow keys walk over the squares, Enter opens
        first = page.locator('svg[data-kv="bf16"] .sq').first
        first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.dataset.at") == "1024,0.25"
        page.keyboard.press("Enter")
        assert page.locator("#drawer").is_visible()
        before = page.url
        page.keyboard.press("ArrowRight")
        assert page.url != before
        assert found.complaints == []


def test_a_link_to_a_section_stays(browser: Any, report: Path) -> None:
    with tab(browser, offline=True) as found:
        found.page.goto(report.as_uri() + "#memory-0")
        assert found.page.url.endswith("#memory-0")
        assert found.page.evaluate("scrollY") > 500


def test_it_prints_without_the_table_of_cells(browser: Any, report: Path, tmp_path: Path) -> None:
    with tab(browser, offline=True) as found:
        found.page.goto(report.as_uri())
        found.page.emulate_media(media="print")
        assert not found.page.locator("#cells").is_visible()
        assert found.page.locator(".verdict").first.is_visible()
        pdf = found.page.pdf(path=tmp_path / "report.pdf")
        assert pdf.startswith(b"%PDF")
