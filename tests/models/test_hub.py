"""A hub that is out of reach: one sentence in seconds, whatever way it is out of reach."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from niah.errors import ConfigError
from niah.models import hub
from tests.helpers.command import Command


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_an_unknown_id_is_one_sentence_at_once(niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = time.monotonic()
    said = niah("run", "-m", "no-such-org/no-such-model", "-l", "512", "--out", tmp_path / "out")
    assert time.monotonic() - started < 10
    assert said.code == 2
    lines = [line for line in said.err.splitlines() if line]
    assert len(lines) == 1
    assert lines[0].startswith("niah: the model 'no-such-org/no-such-model' is neither a folder nor in the hub's cache")
    assert (
        "the hub at https://huggingface.co cannot be reached (tests may not look up huggingface.co). Give" in lines[0]
    )
    assert not (tmp_path / "out").exists()
    # nobody waits a second time
    assert constants.HF_HUB_OFFLINE


def test_an_unknown_id_with_the_hub_switched_off(niah: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub, "unreachable", lambda *_: pytest.fail("nobody may be asked"))
    said = niah("plan", "-m", "no-such-org/no-such-model", "-l", "512")
    assert said.code == 2
    assert "and HF_HUB_OFFLINE is set" in said.err


def test_a_silent_hub_is_given_up(silent: str) -> None:
    started = time.monotonic()
    assert hub.unreachable(silent, 0.5)
    assert time.monotonic() - started < 3


def test_a_hub_that_answers_anything_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.engines.hosted.peer import Peer

    peer = Peer()
    try:
        monkeypatch.setattr(constants, "ENDPOINT", peer.root)
        assert hub.unreachable(peer.root) is None
        hub.require_cached_or_reachable("org/name", "config.json")
    finally:
        peer.stop()
    assert not constants.HF_HUB_OFFLINE


def test_what_is_cached_needs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_, **__: "/cache/config.json")
    hub.require_cached_or_reachable("org/name", "config.json")
    assert constants.HF_HUB_OFFLINE


@pytest.mark.parametrize("name", ["org/na me", "org/", "-org/name", "a/b--c"])
def test_what_is_no_hub_id(name: str) -> None:
    with pytest.raises(ConfigError):
        hub.require_cached_or_reachable(name, "config.json")


def test_the_memory_table_and_a_data_set_wait_no_longer(niah: Command) -> None:
    started = time.monotonic()
    said = niah("memory", "-m", "no-such-org/no-such-model")
    assert said.code == 2
    assert "cannot be reached" in said.err
    constants.HF_HUB_OFFLINE = False
    said = niah("plan", "--backend", "oracle", "--haystack", "hf:no-such-org/no-such-set", "-l", "512")
    assert said.code == 2
    assert "'hf:no-such-org/no-such-set' is no path on this machine, and the hub at" in said.err
    assert time.monotonic() - started < 10
