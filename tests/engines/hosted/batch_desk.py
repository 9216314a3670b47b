"""Batches of the tests' own server, as OpenAI and as Anthropic have them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from tests.engines.hosted.peer import Peer

_FILE = re.compile(rb'filename="[^"]*".*?\r\n\r\n(.*?)\r\n--', re.DOTALL)
_SHAPES = {"/v1/chat/completions": "chat", "/v1/completions": "completions", "/v1/responses": "responses"}


@dataclass
class Job:
    """A batch that was handed in: its requests as custom id and body."""

    name: str
    shape: str
    requests: list[tuple[str, dict[str, Any]]]
    metadata: dict[str, str]
    created: float
    looks: int = 0


@dataclass
class Desk:
    """Where batches are handed in.

    Attributes:
        looks: at a job until it is through.
        submit_faults: what happens to the job of that number (from 1): ``lost`` arrives and resets the connection,
            ``never`` resets without arriving, or a status.
        line_faults: by request number (from 1) over all jobs: a status, ``missing``, ``expired``, ``broken`` or
            ``empty``.
        refused: errors with which every job fails as a whole.
        foreign: custom ids in the results are somebody else's.
        looks_of: of single jobs, by number.
        list_status: what the list of jobs is answered with instead.
        hidden_s: seconds after which a job shows in the list.
        page_size: jobs on a page of the list.
        forgets: no job is known by its name any more.
    """

    peer: Peer
    looks: int = 1
    submit_faults: Mapping[int, object] = field(default_factory=dict)
    line_faults: Mapping[int, object] = field(default_factory=dict)
    refused: str = ""
    foreign: bool = False
    looks_of: Mapping[int, int] = field(default_factory=dict)
    list_status: int | None = None
    hidden_s: float = 0.0
    page_size: int = 100
    forgets: bool = False
    is_there: bool = True
    files: dict[str, bytes] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    submissions: int = 0
    answered: int = 0

    def routes(self) -> list[Route]:
        post = ["POST"]
        return [
            Route("/v1/files", self._upload, methods=post),
            Route("/v1/files/{name}/content", self._download),
            Route("/v1/batches", self._create, methods=post),
            Route("/v1/batches", self._list),
            Route("/v1/batches/{name}", self._retrieve),
            Route("/v1/messages/batches", self._create_messages, methods=post),
            Route("/v1/messages/batches", self._list),
            Route("/v1/messages/batches/{name}", self._retrieve),
            Route("/v1/messages/batches/{name}/results", self._results),
        ]

    async def _upload(self, request: Request) -> Response:
        if not self.is_there:
            return JSONResponse({"error": {"message": "no such path"}}, 404)
        found = _FILE.search(await request.body())
        name = f"file-{len(self.files) + 1}"
        self.files[name] = found[1] if found else b""
        return JSONResponse({"id": name, "object": "file"})

    async def _create(self, request: Request) -> Response:
        asked = await request.json()
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        assert {line["url"] for line in lines} == {asked["endpoint"]}
        assert asked["completion_window"] == "24h"
        requests = [(line["custom_id"], line["body"]) for line in lines]
        return await self._submitted(request, _SHAPES[asked["endpoint"]], requests, asked["metadata"])

    async def _create_messages(self, request: Request) -> Response:
        requests = [(line["custom_id"], line["params"]) for line in (await request.json())["requests"]]
        return await self._submitted(request, "messages", requests, {})

    async def _submitted(
        self, request: Request, shape: str, requests: list[tuple[str, dict[str, Any]]], metadata: dict[str, str]
    ) -> Response:
        self.submissions += 1
        fault = self.submit_faults.get(self.submissions)
        assert len({name for name, _ in requests}) == len(requests)
        if isinstance(fault, int):
            return JSONResponse({"error": {"message": "out of order"}}, fault)
        if fault != "never":
            self.jobs.append(Job(f"batch_{len(self.jobs) + 1}", shape, requests, metadata, time.time()))
        if fault:
            return await self.peer.abort(request)
        return JSONResponse(self._card(self.jobs[-1]))

    async def _list(self, request: Request) -> Response:
        if self.list_status is not None:
            return JSONResponse({"error": {"message": "not now"}}, self.list_status)
        shown = [job for job in reversed(self.jobs) if time.time() - job.created >= self.hidden_s]
        after = request.query_params.get("after") or request.query_params.get("after_id")
        names = [job.name for job in shown]
        begin = names.index(after) + 1 if after else 0
        cards = [self._card(job) for job in shown[begin : begin + self.page_size]]
        return JSONResponse({"object": "list", "data": cards, "has_more": begin + self.page_size < len(shown)})

    async def _retrieve(self, request: Request) -> Response:
        job = self._job(request)
        if job is None or self.forgets:
            return JSONResponse({"error": {"message": "no such batch"}}, 404)
        job.looks += 1
        return JSONResponse(self._card(job))

    def _job(self, request: Request) -> Job | None:
        return next((job for job in self.jobs if job.name == request.path_params["name"]), None)

    def _card(self, job: Job) -> dict[str, Any]:
        needed = self.looks_of.get(self.jobs.index(job) + 1, self.looks)
        count, is_over = len(job.requests), job.looks >= needed
        if job.shape == "messages":
            url = f"{self.peer.root}/v1/messages/batches/{job.name}/results"
            counts = dict.fromkeys(("canceled", "errored", "expired"), 0)
            return {
                "id": job.name,
                "type": "message_batch",
                "processing_status": "ended" if is_over else "in_progress",
                "request_counts": counts | {"processing": 0 if is_over else count, "succeeded": count * is_over},
                "results_url": url if is_over and not self.refused else None,
                "created_at": datetime.fromtimestamp(job.created, UTC).isoformat(),
            }
        card = {"id": job.name, "object": "batch", "created_at": int(job.created), "metadata": job.metadata}
        if is_over and self.refused:
            return card | {"status": "failed", "errors": {"data": [{"code": "x", "message": self.refused}]}}
        files = {"output_file_id": f"{job.name}-out", "error_file_id": f"{job.name}-bad"} if is_over else {}
        counts = {"completed": count if is_over else 0, "failed": 0, "total": count}
        return card | {"status": "completed" if is_over else "in_progress", "request_counts": counts} | files

    async def _download(self, request: Request) -> Response:
        name, kind = request.path_params["name"].rsplit("-", 1)
        job = next(job for job in self.jobs if job.name == name)
        return Response(b"\n".join(self._lines(job, of_errors=kind == "bad")), media_type="application/jsonl")

    async def _results(self, request: Request) -> Response:
        job = self._job(request)
        assert job is not None
        return Response(b"\n".join(self._lines(job)), media_type="application/x-jsonl")

    def _lines(self, job: Job, *, of_errors: bool = False) -> list[bytes]:
        before = sum(len(other.requests) for other in self.jobs[: self.jobs.index(job)])
        out = []
        # in another order than they were asked
        for number, (custom_id, body) in reversed(list(enumerate(job.requests, before + 1))):
            fault = self.line_faults.get(number)
            is_error = fault is not None and fault not in ("empty", "broken")
            if fault == "missing" or (job.shape != "messages" and is_error != of_errors):
                continue
            line = self._line(job.shape, body, number, fault)
            line["custom_id"] = f"other-{number}" if self.foreign else custom_id
            out.append(b'{"custom_id": "' if fault == "broken" else json.dumps(line).encode())
        return out

    def _line(self, shape: str, body: dict[str, Any], number: int, fault: object) -> dict[str, Any]:
        if shape == "messages":
            return {"result": self._message(body, number, fault)}
        if fault == "expired":
            return {"response": None, "error": {"code": "batch_expired", "message": "not run in time"}}
        if isinstance(fault, int):
            return {"response": {"status_code": fault, "body": {"error": {"message": "no"}}}, "error": None}
        return {"response": {"status_code": 200, "body": self._reply(shape, body, number, fault)}, "error": None}

    def _message(self, body: dict[str, Any], number: int, fault: object) -> dict[str, Any]:
        if fault == "expired":
            return {"type": "expired"}
        if isinstance(fault, int):
            kinds = {400: "invalid_request_error", 401: "authentication_error", 500: "api_error"}
            error = {"type": "error", "error": {"type": kinds[fault], "message": "no"}}
            return {"type": "errored", "error": error}
        return {"type": "succeeded", "message": self._reply("messages", body, number, fault)}

    def _reply(self, shape: str, body: dict[str, Any], number: int, fault: object) -> dict[str, Any]:
        words, counts = self.peer.reply_to(body)
        self.answered += 1
        if fault == "empty":
            words, counts = "", (counts[0], 0)
        return dict(self.peer.shaped(shape, words, counts, number))
