"""What niah itself costs a cell behind an API: 200 cells against an echo server on loopback, 64 at a time.

    python bench/serve.py

The same requests are first sent by the bare HTTP library, 64 at a time, to the same server in its own process: that is
the floor. What a run takes beyond it, per cell, is niah's own: building and sizing prompts, the SDK, the limits,
judging and a row on disk (fsync included). Resident memory is read after a quarter and at the end of ten times as many
cells.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CELLS, AT_ONCE, LENGTH = 200, 64, "1k"
GOAL_MS = 3.0


def serve(port: int) -> None:
    """An echo server: the reply is the last line of the prompt."""
    import uvicorn

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        if scope["path"].endswith("/models"):
            reply: dict[str, Any] = {"data": [{"id": "echo", "owned_by": "bench", "max_model_len": 100_000}]}
        elif "chat" in scope["path"]:
            words = json.loads(body)["messages"][-1]["content"]
            message = {"role": "assistant", "content": words.splitlines()[-1]}
            usage = {"prompt_tokens": len(words) // 4, "completion_tokens": 12}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            reply = {"id": f"{time.perf_counter_ns()}", "choices": [choice], "usage": usage}
        else:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
            return
        data = json.dumps(reply).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical", lifespan="off")


async def bare(url: str, bodies: list[dict[str, Any]]) -> float:
    """Seconds for the same requests by the HTTP library alone."""
    import httpx2

    slots = asyncio.Semaphore(AT_ONCE)
    async with httpx2.AsyncClient(trust_env=False, limits=httpx2.Limits(max_connections=None)) as client:

        async def one(body: dict[str, Any]) -> None:
            async with slots:
                (await client.post(url, json=body)).raise_for_status()

        await asyncio.gather(*(one(body) for body in bodies[:AT_ONCE]))
        started = time.perf_counter()
        await asyncio.gather(*(one(body) for body in bodies))
        return time.perf_counter() - started


def plan_of(url: str, cells: int, out: str) -> Any:
    from niah.api import plan_run
    from niah.config import build_config, normalize

    backend = {"name": "openai", "base_url": url, "concurrency": AT_ONCE}
    grid = {"lengths": LENGTH, "depths": "20", "trials": cells // 20}
    return plan_run(build_config(normalize({"backend": backend, "model": "echo", "out": out, "grid": grid})))


def rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


class Watch:
    """When rows come, and memory then."""

    def __init__(self) -> None:
        self.first = self.last = self.first_cpu = self.last_cpu = 0.0
        self.rows = 0
        self.memory: list[tuple[int, float]] = []

    def handle(self, event: Any) -> None:
        from niah.runner import events as ev

        if isinstance(event, ev.SettingStarted):
            self.first, self.first_cpu = time.perf_counter(), time.process_time()
        if isinstance(event, ev.RowDone):
            self.rows += 1
            self.last, self.last_cpu = time.perf_counter(), time.process_time()
            if self.rows % 50 == 0:
                self.memory.append((self.rows, rss_mib()))


def timed_run(url: str, cells: int) -> Watch:
    import niah.api as api

    api.write_outputs = lambda *_: []
    watch = Watch()
    with tempfile.TemporaryDirectory() as out:
        outcome = api.execute(plan_of(url, cells, out), [watch], command="bench")
        assert outcome.answered == cells, outcome
        assert not any(setting.total.share for setting in outcome.settings), "an echo is no answer"
    return watch


def main() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(port,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{port}/v1"
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    try:
        with tempfile.TemporaryDirectory() as out:
            plan = plan_of(url, CELLS, out)
            texts = [plan.info.tokenizer.decode(p.ids()) for g in plan.groups for p in plan.builder.prompts(g)]
        bodies = [{"model": "echo", "messages": [{"role": "user", "content": text}]} for text in texts]
        floor_s = min(asyncio.run(bare(f"{url}/chat/completions", bodies)) for _ in range(3))
        timed_run(url, CELLS)  # imports and pools
        watches = [timed_run(url, CELLS) for _ in range(3)]
        took_s = min(watch.last - watch.first for watch in watches)
        cpu_ms = min(watch.last_cpu - watch.first_cpu for watch in watches) / CELLS * 1000
        own_ms = (took_s - floor_s) / CELLS * 1000
        long = timed_run(url, 10 * CELLS)
    finally:
        server.kill()
    print(f"{CELLS} cells of {LENGTH}, {AT_ONCE} at a time: {took_s:.2f} s; bare requests {floor_s:.2f} s")
    print(f"niah's own: {own_ms:.2f} ms a cell (goal < {GOAL_MS:g}), {cpu_ms:.2f} ms of CPU with the client's")
    start, end = long.memory[len(long.memory) // 4], long.memory[-1]
    print(f"memory: {start[1]:.0f} MiB after {start[0]} cells, {end[1]:.0f} MiB after {end[0]}")
    return 0 if own_ms < GOAL_MS else 1


if __name__ == "__main__":
    sys.exit(main())
