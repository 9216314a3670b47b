"""llama.cpp for real: SmolLM2's GGUF answers, its bytes add up, and its process ends whatever happens."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

import niah as package
from niah.api import plan_run
from niah.backends.llamacpp import child
from niah.config import build_config
from niah.engines.base import SessionRequest
from niah.types import Answer, Reply
from tests.helpers.command import Command
from tests.helpers.known import known

pytestmark = pytest.mark.model

RUN = ("run", "--backend", "llamacpp", "--lengths", "384", "--depths", "3", "--trials", "1")
WAIT_S = 120


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> package.Run:
    out = tmp_path_factory.mktemp("llamacpp")
    kv = "f16,llama(k=q5_1,v=iq4_nl)"
    return package.run(backend="llamacpp", kv=kv, lengths="384", depths=3, trials=1, out=str(out))


def test_rows_add_up(run: package.Run) -> None:
    assert run.kvs() == ["fp16", "llama(k=q5_1,v=iq4_nl)"]
    assert run.reference == "fp16"
    assert len(run.rows) == 6
    per_token = {"fp16": 23_040, "llama(k=q5_1,v=iq4_nl)": 30 * 3 * 2 * (24 + 18)}
    for row in run.rows:
        assert row.outcome == "answered"
        assert known(row.prompt_tokens) + known(row.answer_budget) == 384
        assert row.engine_prompt_tokens == row.prompt_tokens
        memory = row.kv_memory
        assert memory.source == "reported"
        assert known(memory.logical_bytes) == known(memory.formula_bytes) == known(memory.tokens) * per_token[row.kv]
        assert memory.pool_bytes == 512 * per_token[row.kv]
        assert known(row.logprob) < 0
    assert sum(bool(row.correct) for row in run.rows) >= 2


def test_one_prefill_answers_all_depths(run: package.Run) -> None:
    for kv in run.kvs():
        cached = {row.depth: known(row.cached_tokens) for row in run.rows if row.kv == kv}
        assert min(cached[0.5], cached[1.0]) > 300
        assert cached[0.0] < 100


def test_what_is_in_force_is_read_back(run: package.Run) -> None:
    effective = run.setting("llama(k=q5_1,v=iq4_nl)")["effective"]
    assert (effective["kv.k_dtype"], effective["kv.v_dtype"]) == ("q5_1", "iq4_nl")
    assert effective["kv.reported_mib"] == pytest.approx(512 * 7560 / 2**20, abs=0.01)
    assert effective["tokenizer_agrees"] is True
    assert effective["prompt.start_agrees"] is True
    assert {run.setting(kv)["effective"]["flash_attn"] for kv in run.kvs()} == {"enabled"}


def test_without_reuse_the_answers_are_the_same(run: package.Run) -> None:
    plan = plan_run(build_config({**run.manifest["asked"]["config"], "kv": ["fp16"]}))
    warm = {row.pair_id: row for row in run.rows if row.kv == "fp16"}

    async def cold() -> list[Reply]:
        request = SessionRequest(plan.kvs[0], 384, reuse=False, is_complete=plan.builder.task.is_complete)
        async with plan.backend.open(plan.options, plan.info) as engine, engine.session(request) as session:
            return await session.answer(plan.builder.prompts(plan.groups[0])[:2])

    for cell, reply in zip(plan.cells(plan.kvs[0], plan.groups[0]), asyncio.run(cold()), strict=False):
        row = warm[cell.pair_id]
        assert isinstance(reply, Answer)
        assert reply.cached_tokens == 0
        assert reply.text == row.answer
        assert reply.logprob == pytest.approx(row.logprob, abs=0.05)


def test_a_prompt_is_built_again_from_its_row(niah: Command, run: package.Run) -> None:
    document = niah("cell", run.path, run.rows[0].cell_id, "--prompt", "--json").document()
    assert document["matches"] is True


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _is_server(process: psutil.Process) -> bool:
    try:
        return child.__file__ in process.cmdline()
    except psutil.Error:
        return False


def _started(out: Path, *, with_rows: bool) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
    """A run whose server is starting or has answered, with all processes that it has started."""
    command = [sys.executable, "-m", "niah", *RUN, "--kv", "f16", "--trials", "40", "--out", str(out)]
    environment = {**os.environ, "TMPDIR": str(out)}
    with (out / "said.txt").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
    _until(lambda: any(_is_server(member) for member in _children(process.pid)), process)
    if with_rows:
        _until(lambda: any(f.stat().st_size for f in out.glob("*/rows.jsonl")), process)
    return process, _children(process.pid)


def _until(what: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        time.sleep(0.05)


def _gone(family: list[psutil.Process]) -> bool:
    return not any(member.is_running() and member.status() != psutil.STATUS_ZOMBIE for member in family)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_the_server_ends_with_the_run(tmp_path: Path, sent: signal.Signals) -> None:
    process, family = _started(tmp_path, with_rows=False)
    process.send_signal(sent)
    code = process.wait(WAIT_S)
    assert code == (130 if sent == signal.SIGINT else -signal.SIGKILL)
    _until(lambda: _gone(family))
    assert b"Traceback" not in (tmp_path / "said.txt").read_bytes()


def test_a_server_that_dies_fails_the_rest_and_loses_nothing(tmp_path: Path) -> None:
    process, family = _started(tmp_path, with_rows=True)
    for member in family:
        if _is_server(member):
            member.kill()
    assert process.wait(WAIT_S) == 3
    record = package.load(tmp_path)
    kinds = {row.error_kind for row in record.rows if row.outcome == "failed"}
    assert kinds == {"server_gone"}
    assert any(row.outcome == "answered" for row in record.rows)
    assert all(row.correct is None for row in record.rows if row.outcome == "failed")
    assert "llama.cpp server ended during the run" in known(record.rows[-1].error)
    _until(lambda: _gone(family))


def test_a_model_that_cannot_be_loaded_is_one_message(
    niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from niah.backends.llamacpp import open as _llamacpp_open

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 64)
    real = _llamacpp_open.child_arguments
    monkeypatch.setattr(_llamacpp_open, "child_arguments", lambda *a: real(*a) | {"model": str(broken)})
    said = niah(*RUN, "--kv", "f16", "--out", tmp_path / "out")
    assert said.code == 4
    assert "the llama.cpp server ended while it was starting" in said.err
    refused = niah(*RUN, "--kv", "f16", "-m", broken, "--out", tmp_path / "out2")
    assert refused.code == 2
    assert "cannot be read" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    ("more", "code", "sentence"),
    [
        (("--kv", "int8"), 2, "'llamacpp' has no keys and values stored as int8"),
        (("--kv", "q4_0", "--set", "backend.flash_attn=false"), 2, "only under flash attention"),
        (("--kv", "f16", "-m", "nowhere.gguf"), 2, "no GGUF model 'nowhere.gguf'"),
        (("--kv", "f16", "--lengths", "16k"), 2, "takes at most 8,192 tokens"),
        (("--kv", "llama(k=q9_0)"), 2, "no cache of type 'q9_0'"),
    ],
)
def test_wrong_commands(niah: Command, tmp_path: Path, more: tuple[str, ...], code: int, sentence: str) -> None:
    said = niah(*RUN, *more, "--out", tmp_path / "out")
    assert said.code == code
    assert sentence in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "out").exists()


def test_missing_package_prints_the_install_line(niah: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *rest: None if n == "xllamacpp" else find(n, *rest))
    said = niah(*RUN, "--kv", "f16")
    assert said.code == 2
    assert "pip install 'niah-kv[llamacpp]'" in said.err
