"""llm-katan's echo server: it repeats the prompt, which is no retrieval, and fails now and then, which is no answer.

It stands here because what it needs is installed with vLLM; vLLM itself has no part in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

import niah as package
from niah.engines.server.process import pick_port
from tests.helpers.known import known

for _name in ("llm_katan", "openai", "anthropic", "stamina", "aiolimiter"):
    pytest.importorskip(_name, reason=f"{_name} is not installed here: see requirements/vllm-cpu.txt")

START_S = 60
KEY = "a-key-for-a-parrot"


@pytest.fixture(scope="module")
def parrot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One request in five fails with 500."""
    folder, port = tmp_path_factory.mktemp("parrot"), pick_port(None)
    options = ["--model", "smollm2", "--backend", "echo", "--host", "127.0.0.1", "--port", str(port)]
    options += ["--providers", "openai,anthropic", "--max-concurrent", "8", "--error-rate", "0.2"]
    # its own command; the module alone does nothing
    start = "from llm_katan.cli import main; main()"
    command = [sys.executable, "-c", start, *options, "--stats-file", str(folder / "stats.json")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        _until_it_listens(f"http://127.0.0.1:{port}", process, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _until_it_listens(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        try:
            httpx2.get(f"{address}/v1/models", headers={"Authorization": f"Bearer {KEY}"})
        except httpx2.TransportError:
            time.sleep(0.1)
        else:
            return


@pytest.mark.parametrize("backend", ["openai", "anthropic"])
def test_a_parrot_scores_nothing(parrot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    monkeypatch.setitem(os.environ, "PARROT_KEY", KEY)
    base = f"{parrot}/v1" if backend == "openai" else parrot
    asked = {"name": backend, "base_url": base, "api_key_env": "PARROT_KEY", "retry_wait_s": 0.02, "concurrency": 8}
    run = package.run(backend=asked, model="smollm2", lengths="512,1k", depths=5, trials=4, out=str(tmp_path))
    assert len(run.rows) == 40
    assert {(row.outcome, row.correct) for row in run.rows} == {("answered", False)}
    assert {row.why for row in run.rows} == {"the reply repeats the prompt's instruction: an echo is no retrieval"}
    # nobody counts the tokens of this server but an estimate, and that is said
    assert all(str(row.counted_by).startswith("estimate") for row in run.rows)
    assert sum(known(row.requests) for row in run.rows) > 40, "its errors were asked again"
    assert not run.setting("auto")["broken"]
