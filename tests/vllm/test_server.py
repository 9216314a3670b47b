"""The vllm-server backend: a real server is started, measured, interrupted and killed, and nothing is left running.

Engine starts take half a minute each, so one server answers all questions that do not end it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

import niah as package
from niah.backends.vllm_server.options import VllmServerOptions
from niah.backends.vllm_server.plugin import PLUGIN
from niah.backends.vllm_server.process import start_server
from niah.engines.base import SessionRequest
from niah.engines.server.http import HttpClient
from niah.engines.server.process import ServerProcess
from niah.errors import BackendUnavailable, CellError, ConfigError
from niah.kv.grammar import parse_one
from niah.types import Answer, Host
from tests.helpers.command import Command
from tests.helpers.known import known

BLOCK = 128
FP32_PAGE = BLOCK * 30 * 3 * 2 * 64 * 4
START_S = 400
FAST = ("--backend", "vllm-server", "--set", "backend.dtype=fp32", "--kv", "auto", "--no-reference", "-l", "384")


class StartedRun:
    """``niah run`` in a process of its own, and every process that it has started."""

    def __init__(self, out: Path, *args: str) -> None:
        self.out = out
        self._said = (out / "said.txt").open("w+")
        command = [sys.executable, "-m", "niah", "run", *FAST, "--out", str(out), *args]
        environment = {**os.environ, "TMPDIR": str(out)}  # logs that are kept after a failure go with the test
        self._process = subprocess.Popen(command, stdout=self._said, stderr=subprocess.STDOUT, env=environment)
        self._family: dict[int, psutil.Process] = {}

    @property
    def pid(self) -> int:
        return self._process.pid

    def until(self, what: Callable[[], bool]) -> None:
        """Wait for something while the command runs."""
        deadline = time.monotonic() + START_S
        while not what():
            assert time.monotonic() < deadline, self.said()
            assert self._process.poll() is None, self.said()
            self.look()
            time.sleep(0.1)
        self.look()

    def look(self) -> list[psutil.Process]:
        """Remember who is in the family now: an orphan can no longer be found by its parent."""
        children = psutil.Process(self.pid).children(recursive=True)
        self._family |= {child.pid: child for child in children}
        return children

    def rows(self) -> list[dict[str, Any]]:
        lines = [line for file in self.out.glob("*/rows.jsonl") for line in file.read_text().splitlines()]
        return [json.loads(line) for line in lines]

    def wait(self) -> int:
        return self._process.wait(START_S)

    def said(self) -> str:
        self._said.seek(0)
        return self._said.read()

    def left_over(self, within_s: float) -> list[str]:
        """Processes of the family that still run."""
        assert len(self._family) >= 2, "the server was never seen"
        _, alive = psutil.wait_procs(list(self._family.values()), timeout=within_s)
        return [str(process) for process in alive if process.status() != psutil.STATUS_ZOMBIE]

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._said.close()


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., StartedRun]]:
    started: list[StartedRun] = []

    def start(*args: str) -> StartedRun:
        started.append(StartedRun(tmp_path, *args))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_starts_measures_and_stops(command: Callable[..., StartedRun]) -> None:
    run = command("-d", "0,100", "-n", "1", "--json")
    run.until(lambda: bool(run.rows()))
    assert run.wait() == 0, run.said()
    assert run.left_over(1.0) == []
    record = package.load(run.out)
    first, second = record.rows
    for row in (first, second):
        assert row.outcome == "answered"
        assert known(row.prompt_tokens) + known(row.answer_budget) == row.length == 384
        assert row.engine_prompt_tokens == row.prompt_tokens
        assert row.logprob is not None
        assert row.logprob < 0
        memory = row.kv_memory
        assert memory.source == "sampled_metrics"
        assert memory.logical_bytes is None
        # the reply is read to its end, so more may be stored than the part that is the answer
        assert (
            known(row.output_tokens) - 1
            <= known(memory.tokens) - known(row.prompt_tokens)
            <= known(row.answer_budget) - 1
        )
        assert memory.allocated_bytes in (None, 3 * FP32_PAGE)
        assert known(memory.pool_bytes) % FP32_PAGE == 0
    assert (first.cached_tokens, second.cached_tokens) == (0, 2 * BLOCK)
    effective = record.setting("auto")["effective"]
    assert effective["kv.k_dtype"] == "fp32"
    assert effective["kv.page_bytes"] == FP32_PAGE
    assert effective["kv.element_bytes"] == 4
    assert effective["prefix_caching"] is True
    assert effective["preemptions"] == 0
    readings = [json.loads(line) for line in (record.path / "metrics.jsonl").read_text().splitlines()]
    assert max(reading["num_requests_running"] for reading in readings) == 1
    assert max(reading["kv_cache_usage_perc"] for reading in readings) > 0


def test_interrupting_leaves_nothing_running(command: Callable[..., StartedRun]) -> None:
    run = command("-d", "0,100", "-n", "40")
    run.until(lambda: bool(run.rows()))
    os.kill(run.pid, signal.SIGINT)
    assert run.wait() == 130, run.said()
    assert run.left_over(1.0) == []
    assert 1 <= len(run.rows()) < 80


def test_a_server_that_dies_fails_the_rest_at_once(command: Callable[..., StartedRun]) -> None:
    run = command("-d", "0,100", "-n", "20")
    run.until(lambda: bool(run.rows()))
    (engine,) = (child for child in run.look() if "EngineCore" in " ".join(child.cmdline()))
    engine.kill()
    died = time.monotonic()
    assert run.wait() == 3, run.said()
    assert time.monotonic() - died < 60
    assert run.left_over(1.0) == []
    rows = run.rows()
    failed = [row for row in rows if row["outcome"] == "failed"]
    assert len(rows) == 40
    assert 0 < len(failed) < 40
    assert {row["error"].split(":")[0] for row in failed} == {"server_gone"}
    log = failed[0]["error"].split("its log '")[1].split("'")[0]
    assert Path(log).is_file()


def test_kill_9_takes_the_server_along(command: Callable[..., StartedRun]) -> None:
    run = command("-d", "0,100", "-n", "1")
    run.until(lambda: any("api_server" in " ".join(child.cmdline()[:3]) for child in run.look()))
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert run.left_over(15.0) == []


def test_a_server_that_does_not_start_says_why(niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = niah("run", *FAST, "-d", "0,100", "--set", "backend.max_num_batched_tokens=1", "--out", tmp_path)
    assert said.code == 4
    assert "ended while it was starting" in said.err
    assert "max_num_batched_tokens" in said.err.split("ends:")[1]
    assert not [p for p in psutil.Process().children(recursive=True) if "api_server" in " ".join(p.cmdline())]


def test_a_taken_port(niah: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        said = niah("run", *FAST, "-d", "0,100", "--set", f"backend.port={port}", "--out", tmp_path)
    assert said.code == 2
    assert f"port {port}" in said.err


def test_nobody_at_the_address(niah: Command, tmp_path: Path) -> None:
    said = niah("run", *FAST[:2], *FAST[4:], "--set", "backend.base_url=http://127.0.0.1:9", "--out", tmp_path)
    assert said.code == 4
    assert "http://127.0.0.1:9" in said.err


@pytest.fixture(scope="module")
def server(smollm2_folder: Path) -> Iterator[str]:
    """A server that runs already; it takes 384 + 1 tokens."""
    options = VllmServerOptions(dtype="fp32")
    info = PLUGIN.describe(options, "smollm2")
    request = SessionRequest(kv=parse_one("auto"), max_length=384, reuse=True, is_complete=lambda _text, _case: False)
    process, address = start_server(options, info, request, on_cpu=True)
    try:
        asyncio.run(_healthy(address, process))
        yield address
    finally:
        process.stop()


async def _healthy(address: str, process: ServerProcess) -> None:
    client = HttpClient(address, 30)
    deadline = time.monotonic() + START_S
    while not await client.is_healthy():
        assert process.is_running, process.last_lines()
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)
    await client.close()


def ask(server: str, out: Path, **settings: Any) -> package.Run:
    options = {"name": "vllm-server", "base_url": server, **settings.pop("backend", {})}
    grid = {"kv": "auto", "reference": False, "lengths": "384", "depths": "0,50,100", "trials": 1}
    return package.run(backend=options, out=str(out), **{**grid, **settings})


def test_a_server_that_runs_already(server: str, tmp_path: Path) -> None:
    alone = ask(server, tmp_path / "alone")
    # an answer can be over before a reading of a busy machine comes back: then nothing is said, never something else
    held = [row.kv_memory.allocated_bytes for row in alone.rows]
    assert set(held) - {None} == {3 * FP32_PAGE}
    effective = alone.setting("auto")["effective"]
    assert effective["server"] == server
    assert effective["served_model"] == "smollm2"
    assert "kv.k_dtype" not in effective, "only the server's owner knows what auto is"
    together = ask(server, tmp_path / "together", backend={"concurrency": 3})
    # of three in flight the last one may be left alone for a reading, which is then its own; never that of several
    together_held = [row.kv_memory.allocated_bytes for row in together.rows]
    assert set(together_held) <= {None, 3 * FP32_PAGE}
    assert together_held.count(None) >= 2
    assert [row.kv_memory.pool_bytes for row in together.rows] == [alone.rows[0].kv_memory.pool_bytes] * 3
    assert {row.pair_id: row.answer for row in together.rows} == {row.pair_id: row.answer for row in alone.rows}
    for one, other in zip(alone.rows, sorted(together.rows, key=lambda row: row.depth), strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-3)


def test_no_reuse_on_a_server_that_reuses(server: str, tmp_path: Path) -> None:
    for folder in ("once", "again"):
        run = ask(server, tmp_path / folder, reuse="off", depths="0,100")
        assert [row.cached_tokens for row in run.rows] == [0, 0]
        assert [row.logprob for row in run.rows] == [None, None]


def test_log_probabilities_are_those_of_the_whole_text(server: str, tmp_path: Path) -> None:
    """Against vLLM's own ``prompt_logprobs`` of prompt and expected answer, processed in one pass."""
    from niah.config import build_config
    from niah.runner.canary import canary_prompts

    info = PLUGIN.describe(VllmServerOptions(), "smollm2")
    prompts = canary_prompts(build_config({"model": "smollm2", "grid": {"lengths": "256"}}), info)
    options = VllmServerOptions(base_url=server)
    request = SessionRequest(kv=parse_one("auto"), max_length=256, reuse=True, is_complete=lambda _text, _case: False)

    async def both() -> list[tuple[float, float]]:
        client = HttpClient(server, 60)
        async with PLUGIN.open(options, info) as engine, engine.session(request) as session:
            replies = await session.answer(prompts)
        pairs = []
        for prompt, reply in zip(prompts, replies, strict=True):
            body = {"model": "smollm2", "prompt": [*prompt.ids(), *prompt.gold], "max_tokens": 1, "prompt_logprobs": 0}
            whole = await client.post("/v1/completions", body)
            rows = whole["choices"][0]["prompt_logprobs"][-len(prompt.gold) :]
            wanted = sum(row[str(token)]["logprob"] for row, token in zip(rows, prompt.gold, strict=True))
            assert isinstance(reply, Answer)
            pairs.append((known(reply.logprob), wanted))
        await client.close()
        return pairs

    pairs = asyncio.run(both())
    assert len(pairs) == 4
    for ours, wanted in pairs:
        assert ours == pytest.approx(wanted, abs=2e-3)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"lengths": "512"}, r"385 tokens.*512"),
        ({"backend": {"served_model": "other"}}, r"serves 'smollm2', not 'other'"),
        ({"kv": "fp8"}, r"'fp8_e4m3'.*type 'auto'"),
        ({"kv": "bf16"}, r"4 bytes an element instead of 2"),
    ],
)
def test_a_server_that_is_not_what_is_asked(server: str, tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ask(server, tmp_path, **settings)


@pytest.mark.parametrize(
    ("options", "kv", "said"),
    [
        ({"base_url": "http://10.1.2.3:8000"}, "auto", "plain http"),
        ({"base_url": "http://user:pass@127.0.0.1:8000"}, "auto", "password"),
        ({"base_url": "127.0.0.1:8000"}, "auto", "no http address"),
        ({"base_url": "http://127.0.0.1:8000", "dtype": "fp32"}, "auto", "cannot be told"),
        ({"base_url": "http://127.0.0.1:8000"}, "int8", ""),
        ({"base_url": "http://10.1.2.3:8000", "allow_remote_http": True}, "auto", ""),
        ({"base_url": "https://example.org"}, "auto", ""),
        ({}, "int8", "CPU attention stores only"),
    ],
)
def test_what_is_refused_beforehand(options: dict[str, Any], kv: str, said: str) -> None:
    found = PLUGIN.problems(VllmServerOptions(**options), parse_one(kv), None, Host())
    assert bool(found) == bool(said)
    assert not said or said in found[0].sentence()
    assert "pass@" not in "".join(problem.sentence() for problem in found)


@asynccontextmanager
async def canned(reply: str) -> AsyncIterator[HttpClient]:
    """A server that says the same to everything and closes."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply.replace("\n", "\r\n").encode())
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with listener:
        client = HttpClient(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1/", 5)
        yield client
        await client.close()


STREAM = "HTTP/1.1 200 OK\nconnection: close\ncontent-type: text/event-stream\n\n"


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (STREAM + 'data: {"choices": []}\n\n', "connection_lost", "cut off"),
        (STREAM + "data: {broken\n\n", "bad_reply", "not JSON"),
        (STREAM + 'data: {"error": {"message": "boom", "code": 500}}\n\n', "server_error", "boom"),
        (
            'HTTP/1.1 400 Bad\nconnection: close\n\n{"error":{"message":"maximum context length is 9 tokens"}}',
            "context_too_long",
            "is 9 tokens",
        ),
        ('HTTP/1.1 404 Not\nconnection: close\n\n{"object":"error","message":"no such model"}', "", "such"),
        ("HTTP/1.1 503 Busy\nconnection: close\n\nlater", "server_error", "later"),
        ("", "connection_lost", ""),
    ],
)
def test_faults_have_kinds(reply: str, kind: str, said: str) -> None:
    async def run() -> None:
        async with canned(reply) as client:
            assert not client.base_url.endswith("v1")
            async for _ in client.events("/v1/completions", {}):
                pass

    with pytest.raises((CellError, BackendUnavailable), match=said) as caught:
        asyncio.run(run())
    # what every further request would meet too has no kind: it ends the run
    assert getattr(caught.value, "kind", "") == kind
