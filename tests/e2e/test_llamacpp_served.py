"""The backends openai and anthropic against llama.cpp's own server: exact counts, and the answers that the backend
llamacpp gets to the same prompts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import pytest

import niah as package
from niah.backends.llamacpp import open as opening
from niah.backends.llamacpp.options import LlamaCppOptions
from niah.backends.llamacpp.plugin import PLUGIN
from niah.engines.base import SessionRequest
from niah.kv.grammar import parse_one
from niah.store.schema import Row
from tests.helpers.known import known

pytestmark = pytest.mark.model
for _name in ("openai", "anthropic", "stamina", "aiolimiter"):
    pytest.importorskip(_name, reason=f"{_name} is not installed")

START_S = 120
GRID: dict[str, Any] = {"lengths": "320,448", "depths": "5", "trials": 2}
APIS: list[tuple[str, dict[str, Any]]] = [
    ("openai", {"api": "chat", "logprobs": True}),
    ("anthropic", {}),
]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server of SmolLM2's GGUF, as the backend llamacpp starts one."""
    options = LlamaCppOptions()
    info = PLUGIN.describe(options, "smollm2")
    request = SessionRequest(kv=parse_one("fp16"), max_length=1024, reuse=True, is_complete=lambda _text, _case: False)
    process = opening._start(options, info, request)
    try:
        yield _address(process)
    finally:
        process.stop()


def _address(process: Any) -> str:
    deadline = time.monotonic() + START_S
    while not (address := opening.listening_address(process.log.read_text(errors="replace"))):
        assert process.is_running, process.last_lines()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return address


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], dict[tuple[int, float, int], str]]:
    """What the backend llamacpp gets to the same cells, by whether the answer is begun for the model."""
    out = tmp_path_factory.mktemp("own")

    @cache
    def answers(begun: bool) -> dict[tuple[int, float, int], str]:
        task = {"name": "multikey", "answer_prefix": begun}
        where = str(out / str(begun))
        backend = {"name": "llamacpp", "logprobs": False}
        run = package.run(backend=backend, kv="fp16", reference=False, task=task, model="smollm2", out=where, **GRID)
        return {(row.length, row.depth, row.trial): _value(row.answer) for row in run.rows}

    return answers


def _value(answer: str) -> str:
    match = re.search(r"\d{7}", answer)
    return match.group() if match else answer.strip()


@pytest.mark.proof(one_in=2)
@pytest.mark.parametrize(("backend", "options"), APIS, ids=["chat", "messages"])
def test_answers_agree_with_the_own_backend(
    server: str,
    in_process: Callable[[bool], dict[tuple[int, float, int], str]],
    tmp_path: Path,
    backend: str,
    options: dict[str, Any],
) -> None:
    base = f"{server}/v1" if backend == "openai" else server
    asked = {"name": backend, "base_url": base, "tokenizer": "smollm2", "concurrency": 1, **options}
    rows = package.run(backend=asked, model=_model(server), out=str(tmp_path), **GRID).rows
    assert len(rows) == 20
    assert all(_is_sized(row) for row in rows)
    for row in rows:
        assert row.outcome in ("answered", "truncated")
        assert (row.answer_logprob is not None) == bool(options.get("logprobs"))
    theirs = in_process(rows[0].answer_prefix)
    agree = sum(theirs[row.length, row.depth, row.trial] == _value(row.answer) for row in rows)
    print(f"{backend} {options}: {agree} of {len(rows)} answers agree")
    assert agree >= 0.9 * len(rows)


def test_raw_text_is_sized_too(server: str, tmp_path: Path) -> None:
    asked = {"name": "openai", "base_url": f"{server}/v1", "tokenizer": "smollm2", "api": "completions"}
    rows = package.run(backend=asked, model=_model(server), out=str(tmp_path), lengths="320", depths=3, trials=1).rows
    assert all(_is_sized(row) for row in rows)
    assert {row.outcome for row in rows} <= {"answered", "truncated"}


def _model(server: str) -> str:
    return str(httpx2.get(f"{server}/v1/models").json()["data"][0]["id"])


def _is_sized(row: Row) -> bool:
    """Filled as asked by the server's own count, and nothing said of a cache that cannot be seen."""
    fills = known(row.prompt_tokens) + known(row.answer_budget) == row.length
    long_enough = known(row.prompt_tokens) >= 0.99 * row.length - known(row.answer_budget)
    seen = row.kv_memory.source != "not_observable" or row.kv_memory.logical_bytes is not None
    return fills and long_enough and row.engine_prompt_tokens == row.prompt_tokens and not seen
