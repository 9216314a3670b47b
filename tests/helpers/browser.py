"""A headless Chromium for tests that look at pages as people do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")


@dataclass
class Tab:
    """A page with all that it complained about."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        return " ".join(self.page.locator(selector).first.inner_text().split())


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser. While it is open this thread has a running event loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def tab(browser: Any, *, offline: bool = False, width: int = 1280, scheme: str = "light") -> Iterator[Tab]:
    """A page in a context of its own; complaints are console errors, exceptions, and requests for anything outside."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=offline, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(15_000)
    found = Tab(page)

    def dismiss(dialog: Any) -> None:
        found.complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("console", lambda message: found.complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("dialog", dismiss)
    if offline:
        local = ("file:", "data:")
        page.on("request", lambda r: None if r.url.startswith(local) else found.complaints.append(f"request {r.url}"))
    yield found
    context.close()
