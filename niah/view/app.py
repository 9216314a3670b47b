"""The pages of ``niah view``: list of runs, a run going on, its report, two runs compared. Nothing is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from niah.errors import NiahError, StoreError
from niah.report.data.surroundings import Surroundings, read_surroundings
from niah.report.page.html import render_report, script_policy, template_text
from niah.report.palette import Palette, share_scale, stops
from niah.store.folder import RunFolder
from niah.store.read import RunRecord
from niah.store.sound import check_manifest
from niah.view.follow import Follower
from niah.view.guard import Access, Guard
from niah.view.runs import Results, state_of

ROWS_EVERY_S = 0.5
LIST_EVERY_S = 1.0
_KEPT_PAGES = 8
_NOT_KEPT = "this run has not kept them, and niah report adds them"
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def make_app(results: Results, access: Access, palette: Palette = "cividis") -> Starlette:
    """The application over one results folder."""
    pages = _Pages(results, palette)
    routes = [
        Route("/", pages.index),
        Route("/events", pages.index_events),
        Route("/runs/{name}", pages.report),
        Route("/runs/{name}/live", pages.live),
        Route("/runs/{name}/events", pages.live_events),
        Route("/compare", pages.compare),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(Guard, access=access)])
    app.add_exception_handler(NiahError, _refused)
    app.add_exception_handler(404, _not_found)
    return app


class _Pages:
    """The handlers; everything is read anew for each request, but a report that has not changed is not made again."""

    def __init__(self, results: Results, palette: Palette) -> None:
        self._results, self._palette = results, palette
        self._reports: dict[tuple[Any, ...], str] = {}

    async def index(self, _: Request) -> Response:
        entries = await run_in_threadpool(self._results.entries)
        return _page("runs.html.j2", "runs.js", entries=entries, folder=str(self._results.folder))

    async def index_events(self, _: Request) -> Response:
        def state() -> list[dict[str, Any]]:
            return [entry.to_json() for entry in self._results.entries()]

        return EventSourceResponse(_changes(state, LIST_EVERY_S))

    async def report(self, request: Request) -> Response:
        run = self._results.find(request.path_params["name"])
        return await self._report([run])

    async def live(self, request: Request) -> Response:
        run = self._results.find(request.path_params["name"])
        lengths, depths = _axes(run)
        data: dict[str, Any] = {
            "events": f"/runs/{quote(run.path.name)}/events",
            "report": f"/runs/{quote(run.path.name)}",
        }
        data |= {"lengths": lengths, "depths": depths, "scale": share_scale(self._palette)}
        return _page("live.html.j2", "live.js", name=run.path.name, data=_embedded(data), colors=stops(self._palette))

    async def live_events(self, request: Request) -> Response:
        follower = Follower(self._results.find(request.path_params["name"]))

        def state() -> dict[str, Any]:
            follower.read()
            return follower.snapshot()

        return EventSourceResponse(_changes(state, ROWS_EVERY_S, until=lambda found: found["status"] != "running"))

    async def compare(self, request: Request) -> Response:
        chosen = request.query_params.getlist("run")
        if chosen:
            if len(set(chosen)) != 2:
                raise StoreError(f"choose two runs to compare, not {len(set(chosen))}.")
            found = {self._results.find(name).path.name for name in chosen}
            # the list is newest first, and a run is compared with an earlier one
            new, base = [run.path.name for run in self._results.runs() if run.path.name in found]
            return RedirectResponse(f"/compare?{urlencode({'base': base, 'new': new})}", 303)
        names = [request.query_params.get(name, "") for name in ("base", "new")]
        return await self._report([self._results.find(name) for name in names])

    async def _report(self, runs: Sequence[RunFolder]) -> Response:
        key = tuple((run.path.name, *state_of(run.path)) for run in runs)
        if key not in self._reports:
            page = await run_in_threadpool(self._render, [run.path for run in runs])
            while len(self._reports) >= _KEPT_PAGES:
                self._reports.pop(next(iter(self._reports)))
            self._reports[key] = page
        policy = _REPORT_POLICY.format(script_policy(template_text("report.js")))
        body = self._reports[key].encode("utf-8", "replace")
        return HTMLResponse(body, headers={"content-security-policy": policy})

    def _render(self, paths: Sequence[Path]) -> str:
        records = [RunRecord.load(path) for path in paths]
        for record in records:
            check_manifest(record.manifest, record.path)
        # plugin code and models belong to niah report; a viewer only reads what is there
        around = [read_surroundings(path) or Surroundings({}, _NOT_KEPT) for path in paths]
        return render_report(records, self._palette, around, home="/")


async def _changes(
    state: Callable[[], Any], every_s: float, until: Callable[[Any], bool] = lambda _: False
) -> AsyncIterator[ServerSentEvent]:
    """An event with the state now and after each change, and a last one named ``end`` when ``until`` says so."""
    before = None
    while True:
        try:
            found = await run_in_threadpool(state)
        except NiahError as err:
            yield ServerSentEvent(json.dumps(str(err)), event="refused")
            return
        text = json.dumps(found)
        if text != before:
            yield ServerSentEvent(text, event="state")
            before = text
        if until(found):
            yield ServerSentEvent(json.dumps(found), event="end")
            return
        await asyncio.sleep(every_s)


def _axes(run: RunFolder) -> tuple[list[int], list[float]]:
    """Lengths and depths that were asked, for squares that have no row yet; empty where the manifest does not say."""
    asked = run.manifest().get("asked")
    found = [asked.get(name) if isinstance(asked, dict) else None for name in ("lengths", "depths")]
    lists = [
        value if isinstance(value, list) and all(type(v) in (int, float) for v in value) else [] for value in found
    ]
    return [int(v) for v in lists[0]], [float(v) for v in lists[1]]


@cache
def _templates() -> Environment:
    loader = PackageLoader("niah.view", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@cache
def _text(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def _page(template: str, script_name: str = "", status: int = 200, **values: Any) -> HTMLResponse:
    script = _text(script_name) if script_name else ""
    style = template_text("report.css") + _text("view.css")
    html = _templates().get_template(template).render(style=style, script=script, **values)
    policy = _PAGE_POLICY.format(script_policy(script))
    return HTMLResponse(html.encode("utf-8", "replace"), status, {"content-security-policy": policy})


def _embedded(data: Any) -> str:
    text = json.dumps(data)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


async def _refused(_: Request, err: Exception) -> Response:
    missing = isinstance(err, StoreError) and str(err).startswith("there is no run")
    return _page("error.html.j2", status=404 if missing else 422, message=str(err))


async def _not_found(_: Request, __: Exception) -> Response:
    return _page("error.html.j2", status=404, message="There is no such page.")
