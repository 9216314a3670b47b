"""A peer on loopback for each test, and a command that asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.hosted.peer import Peer
from tests.helpers.command import Command


@pytest.fixture(autouse=True)
def _no_keys_no_figures_little_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("niah.api.write_outputs", lambda *_: [])
    # text kept beyond the prompts themselves, of which such short ones need little
    monkeypatch.setattr("niah.prompts.segments.SLACK_TOKENS", 512)


@pytest.fixture
def start_peer() -> Iterator[Callable[..., Peer]]:
    started: list[Peer] = []

    def start(**settings: Any) -> Peer:
        started.append(Peer(**settings))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def ask(niah: Command, tmp_path: Path) -> Callable[..., Any]:
    """``niah run`` against a peer, two cells of 512 tokens; the result has the rows too."""
    import niah as package

    def run(
        peer: Peer, *args: object, backend: str = "openai", sets: dict[str, object] | None = None, code: int = 0
    ) -> Any:
        base = peer.url if backend == "openai" else peer.root
        options = {"base_url": base, "tokenizer": "words", "retry_wait_s": 0.01, "attempts": 4, **(sets or {})}
        pairs = [part for key, value in options.items() for part in ("--set", f"backend.{key}={value}")]
        out = ("--haystack", "noise", "--out", tmp_path / "out")
        said = niah("run", "--backend", backend, "-m", "peer", "-l", "512", "-d", "2", "-n", "1", *pairs, *out, *args)
        assert said.code == code, said.err
        assert "Traceback" not in said.err
        return package.load(tmp_path / "out") if (tmp_path / "out").exists() else said

    return run
