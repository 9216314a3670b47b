"""``niah view`` as a user starts it, in a real browser."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from niah.store.folder import RunFolder
from niah.store.schema import Row
from tests.helpers.browser import chromium, needs_chromium, tab
from tests.helpers.reports import HOSTILE, make_rows, manifest

TOKEN = "a-token-of-the-tests-0123"


@dataclass
class Served:
    url: str
    process: subprocess.Popen[str]

    def get(self, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> tuple[int, str]:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text


@contextmanager
def served(*args: object, token: str = "") -> Iterator[Served]:
    environment = {**os.environ, "NIAH_VIEW_TOKEN": token, "PYTHONWARNINGS": "default"}
    command = [sys.executable, "-m", "niah", "view", *map(str, args), "--port", "0", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            assert line, process.stderr and process.stderr.read()
            yield Served(json.loads(line)["view"], process)
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    assert "Traceback" not in said


def make_run(results: Path, name: str, rows: list[Row], **changes: object) -> RunFolder:
    (results / name).mkdir(parents=True)
    folder = RunFolder(results / name)
    folder.write_manifest(manifest() | changes)
    for row in rows:
        folder.append(row)
    return folder


EARLY, LATE, LIVE = "2026-11-28-early-0000000001", "2026-11-29-late-0000000002", "2026-11-30-live-0000000003"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An early run, a later one that lost answers, one with a broken manifest; a running one comes with its test."""
    folder = tmp_path_factory.mktemp("results")
    rows = make_rows(6)
    worse = [
        replace(row, correct=False, score=0.0) if row.kv == "bf16" and row.correct and row.trial < 3 else row
        for row in rows
    ]
    make_run(folder, EARLY, rows, started_at="2026-11-28T10:00:00+00:00").close()
    make_run(folder, LATE, worse, started_at="2026-11-29T10:00:00+00:00").close()
    (folder / "broken").mkdir()
    (folder / "broken" / "run.json").write_text("{")
    return folder


@pytest.fixture(scope="module")
def view(results: Path) -> Iterator[Served]:
    with served(results) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@needs_chromium
def test_the_list_and_a_report(browser: Any, view: Served, tmp_path: Path) -> None:
    with tab(browser) as found:
        page = found.page
        page.goto(view.url)
        names = page.locator("#runs tbody th a").all_inner_texts()
        assert [name for name in names if name in (EARLY, LATE)] == [LATE, EARLY]
        broken = page.locator("tr[data-name=broken]")
        assert broken.locator(".badge").inner_text() == "unreadable"
        assert broken.locator("input").is_disabled()
        page.screenshot(path=tmp_path / "view.png")
        page.get_by_role("link", name=EARLY).click()
        page.wait_for_selector(".verdict")
        assert found.text(".verdict").startswith("Against bf16: streaming")
        page.locator('svg[data-kv="int8"] .sq').first.click()
        assert page.locator("#drawer").is_visible()
        page.keyboard.press("Escape")
        page.get_by_role("link", name="all runs").click()
        page.wait_for_selector("#runs")
        assert found.complaints == []


@needs_chromium
def test_two_runs_are_selected_and_compared(browser: Any, view: Served, tmp_path: Path) -> None:
    with tab(browser) as found:
        page = found.page
        page.goto(view.url)
        assert page.locator("#compare").is_disabled()
        for name in (LATE, EARLY):
            page.get_by_label(f"compare {name}").check()
        assert page.url.endswith(f"#run={LATE}&run={EARLY}")
        page.reload()
        assert page.get_by_label(f"compare {EARLY}").is_checked()
        page.locator("#compare").click()
        page.wait_for_selector("#across")
        assert page.url.endswith(f"/compare?base={EARLY}&new={LATE}")
        assert f"Against {EARLY}: bf16 is worse by" in found.text("#across .verdict")
        assert page.locator("#across figure").count() == 4
        page.screenshot(path=tmp_path / "compare.png", full_page=True)
        assert found.complaints == []


@needs_chromium
def test_a_run_is_seen_while_it_goes_on(browser: Any, view: Served, results: Path, tmp_path: Path) -> None:
    rows = [row for row in make_rows(1) if row.kv in ("bf16", "int8")]
    with tab(browser) as found:
        page = found.page
        page.goto(view.url)
        folder = make_run(results, LIVE, rows[:10], status="running", plan={"cells": len(rows)})
        line = page.locator(f"tr[data-name='{LIVE}']")
        line.wait_for()  # it appears by itself
        assert line.locator(".badge").inner_text() == "running"
        line.locator("a").click()
        page.wait_for_selector(".live-grid")
        assert found.text("#count") == f"10 of {len(rows)} cells"
        assert found.text("#status") == "running"
        hostile = replace(rows[10], answer=HOSTILE, correct=False, score=0.0)
        for row in [hostile, *rows[11:]]:
            folder.append(row)
        page.get_by_text(f"{len(rows)} of {len(rows)} cells").wait_for()
        page.screenshot(path=tmp_path / "live.png", full_page=True)
        squares = page.locator("figure", has_text="int8").locator("td")
        assert squares.count() == 25
        assert page.locator("figure", has_text="int8").locator("td.lost").count() == 1
        assert page.locator("#last img, #last script").count() == 0
        folder.write_manifest(manifest() | {"status": "finished", "plan": {"cells": len(rows)}})
        folder.close()
        page.wait_for_selector("#report.button")
        assert found.text("#status") == "finished"
        page.locator("#report").click()
        page.wait_for_selector("#drawer", state="attached")
        assert found.complaints == []


def test_refusals(view: Served) -> None:
    host = urlsplit(view.url).netloc
    assert view.get("/")[0] == 200
    assert view.get("/", {"Host": "evil.example"})[0] == 403
    assert view.get("/", {"Origin": "http://evil.example"})[0] == 403
    assert view.get("/", {"Origin": f"http://{host}"})[0] == 200
    assert view.get("/events", {"Origin": "null"})[0] == 403
    for method in ("POST", "PUT", "DELETE"):
        assert view.get("/", method=method)[0] == 405


@pytest.mark.parametrize(
    "path",
    ["/runs/..%2f..%2fetc%2fpasswd", "/runs/%2e%2e", "/runs/../../etc/passwd", "/runs/x/live", "/runs/x/events",
     "/runs/%00", "/runs/nope", "/static/x", "/compare?base=nope&new=..", "/compare"],
)  # fmt: skip
def test_what_is_not_there(view: Served, path: str) -> None:
    status, text = view.get(path)
    assert status == 404
    assert "Traceback" not in text
    assert "root:" not in text


def test_a_broken_run_and_a_bad_choice_are_one_sentence(view: Served) -> None:
    status, text = view.get("/runs/broken")
    assert status == 422
    assert "cannot be read" in text
    status, text = view.get(f"/compare?run={EARLY}")
    assert status == 422
    assert "choose two runs to compare, not 1." in text


@needs_chromium
def test_a_token_opens_the_door_once(browser: Any, results: Path) -> None:
    with served(results, token=TOKEN) as view:
        plain = view.url.partition("?")[0]
        assert view.url == f"{plain}?token={TOKEN}"
        assert view.get("/")[0] == 401
        assert view.get("/", {"Authorization": f"Bearer {TOKEN}"})[0] == 200
        with tab(browser) as found:
            found.page.goto(view.url)
            assert found.page.url.partition("#")[0] == plain
            found.page.get_by_role("link", name=EARLY).click()
            found.page.wait_for_selector(".verdict")
            assert found.complaints == []


def test_an_empty_folder_has_a_page(tmp_path: Path) -> None:
    with served(tmp_path) as view:
        status, text = view.get("/")
        assert status == 200
        assert "There is no run here yet." in text
