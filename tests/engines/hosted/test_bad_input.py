"""Wrong commands against an API: one sentence, the right exit code, nothing sent that costs anything."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import pytest

from niah.engines.hosted import sdk as _api_sdk
from niah.engines.hosted.options import ApiOptions
from niah.errors import BackendUnavailable
from tests.engines.hosted.peer import StartPeer
from tests.helpers.command import Command

SHORT = ("-l", "512", "-d", "2", "-n", "1")


def _said(niah: Command, *args: object, code: int, sentence: str) -> str:
    said = niah("run", *args)
    assert said.code == code, said.err
    assert sentence in said.err
    assert "Traceback" not in said.err
    assert len([line for line in said.err.splitlines() if line.startswith("niah: ")]) == 1
    return said.err


@pytest.mark.parametrize(
    ("backend", "variable"),
    [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY"), ("gemini", "GEMINI_API_KEY or GOOGLE_API_KEY")],
)
def test_no_key(niah: Command, backend: str, variable: str) -> None:
    _said(niah, "--backend", backend, code=4, sentence=f"no key: the environment variable {variable} is not set")


@pytest.mark.parametrize(
    ("backend", "variable"),
    [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY"), ("gemini", "GEMINI_API_KEY or GOOGLE_API_KEY")],
)
def test_a_plan_needs_no_key_and_says_that_it_estimates(niah: Command, backend: str, variable: str) -> None:
    args = ("plan", "--backend", backend, "-l", "1k", "-d", "3", "-n", "2")
    said = niah(*args)
    assert said.code == 0, said.err
    assert f"estimate    no key: the environment variable {variable} is not set:" in said.out
    assert "nobody was asked, so tokens and money are estimates" in said.out
    assert "refused     nothing" in said.out
    found = niah(*args, "--json").document()
    assert variable in found["sketched"]
    assert found["cells"] == 6
    assert found["money"]["prompt_tokens"] > 6 * 900
    assert found["cost_usd"] > 0
    # what is wrong in itself is still told
    assert niah(*args, "--kv", "int8").code == 2
    assert niah(*args, "--set", "backend.tokenizer=nonsense").code == 2


def test_a_plan_by_a_server_that_is_asked_is_no_estimate(start_peer: StartPeer, niah: Command) -> None:
    pairs = ("--set", f"backend.base_url={start_peer().url}", "--set", "backend.tokenizer=words")
    said = niah("plan", "--backend", "openai", "-m", "peer", *SHORT, *pairs)
    assert said.code == 0, said.err
    assert "estimate" not in said.out


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(
    ("backend", "variable", "host"),
    [
        ("openai", "OPENAI_API_KEY", "https://api.openai.com/v1"),
        ("anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com"),
        ("gemini", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com"),
    ],
)
def test_no_network_is_told_in_seconds(
    niah: Command, monkeypatch: pytest.MonkeyPatch, command: str, backend: str, variable: str, host: str
) -> None:
    monkeypatch.setenv(variable, "a-key-0123456789")
    started = time.monotonic()
    said = niah(command, "--backend", backend, *SHORT)
    assert time.monotonic() - started < 12
    assert said.code == 4
    lines = [line for line in said.err.splitlines() if line]
    assert len(lines) == 1
    assert lines[0].startswith(f"niah: {host} cannot be reached: ")
    assert "Is it running?" not in lines[0]


def test_an_address_that_swallows_everything_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_api_sdk, "_FIRST_CONTACT_S", 1.0)
    monkeypatch.setattr(_api_sdk, "_why_unreachable", lambda *_: time.sleep(30))
    started = time.monotonic()
    with pytest.raises(BackendUnavailable, match=r"https://example\.org cannot be reached: no answer in"):
        _api_sdk.require_reachable(ApiOptions(), "https://example.org")
    assert time.monotonic() - started < 5


def test_a_server_that_is_silent_at_first_counts_as_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_api_sdk, "_FIRST_CONTACT_S", 0.5)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        _api_sdk.require_reachable(ApiOptions(), f"http://127.0.0.1:{listener.getsockname()[1]}/v1")


@pytest.mark.parametrize(
    ("settings", "code", "sentence"),
    [
        ({}, 2, "has no model 'peeer'; it serves 'peer', 'other'. Did you mean 'peer'?"),
        ({"-m": "peer", "--kv": "int8"}, 2, "kv 'int8': a model behind an API shows nothing of its KV cache"),
        ({"-m": "peer", "--kv-dtype": "fp8"}, 2, "kv 'fp8_e4m3'"),
        ({"-m": "peer", "-l": "64k"}, 2, "takes at most 4,096 tokens, and this cell has 65,536"),
        ({"-m": "peer", "-l": "64"}, 2, "too short"),
        ({"-m": "peer", "--set": "backend.tokenizer=o200k"}, 2, "Did you mean 'o200k_base'?"),
        ({"-m": "peer", "--set": "backend.api=chats"}, 2, "backend.api cannot be 'chats'"),
        ({"-m": "peer", "--set": "backend.apikey=x"}, 2, "Keys come from the environment or .env only"),
        ({"-m": "peer", "--set": "backend.served=sk-abcdefghijklmnop1234"}, 2, "holds a key"),
        ({"-m": "peer", "--set": "backend.api_key_env=NO_SUCH_KEY"}, 4, "NO_SUCH_KEY is not set"),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else None,
)
def test_wrong_command(
    start_peer: StartPeer, niah: Command, settings: dict[str, str], code: int, sentence: str
) -> None:
    peer = start_peer(context=4096, models=("peer", "other"))
    args: list[Any] = ["--backend", "openai", "--set", f"backend.base_url={peer.url}", *SHORT, "-m", "peeer"]
    args += [part for pair in settings.items() for part in pair]
    _said(niah, *args, code=code, sentence=sentence)
    assert not peer.asked


@pytest.mark.parametrize("backend", ["openai", "anthropic", "gemini"])
@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("http://192.0.2.7:8000/v1", "plain http to another machine can be read on the way"),
        ("http://example.org/v1", "Use https, or --set backend.allow_remote_http=true"),
        ("https://user:hunter2hunter2@example.org/v1", "a password or key in an address"),
        ("https://example.org/v1?key=hunter2hunter2", "a password or key in an address"),
        ("ftp://127.0.0.1/v1", "it is no http address"),
        ("127.0.0.1:8000", "it is no http address"),
        ("http://127.0.0.1:99999/v1", "it is no http address"),
    ],
)
def test_addresses_that_are_refused(niah: Command, backend: str, address: str, sentence: str) -> None:
    err = _said(niah, "--backend", backend, "--set", f"backend.base_url={address}", code=2, sentence=sentence)
    assert "hunter2" not in err


def test_nothing_listens(niah: Command) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    sets = (f"backend.base_url=http://127.0.0.1:{port}/v1", "backend.attempts=2", "backend.retry_wait_s=0.01")
    pairs = [part for pair in sets for part in ("--set", pair)]
    _said(niah, "--backend", "openai", "-m", "m", *pairs, code=4, sentence="Is it running?")


@pytest.mark.parametrize(
    ("backend", "path", "sentence"),
    [
        ("openai", "", "does not know what is asked of it (404)"),
        ("openai", "/v1beta", "lists no models, so it does not speak OpenAI's API"),
        ("gemini", "/v1", "does not know what is asked of it (404)"),
        ("anthropic", "/v1beta", "does not know what is asked of it (404)"),
    ],
)
def test_another_dialect(start_peer: StartPeer, niah: Command, backend: str, path: str, sentence: str) -> None:
    address = f"backend.base_url={start_peer().root}{path}"
    _said(niah, "--backend", backend, "-m", "peer", *SHORT, "--set", address, code=4, sentence=sentence)


def test_a_model_that_is_gone_in_the_run_ends_it(
    start_peer: StartPeer, niah: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from starlette.responses import JSONResponse

    from tests.engines.hosted import peer as peers

    async def unknown(*_: Any) -> JSONResponse:
        return JSONResponse({"error": {"message": "model 'peer' was unloaded"}}, 404)

    monkeypatch.setitem(peers.FAULTS, "unknown", unknown)
    peer = start_peer(schedule=dict.fromkeys(range(1, 99), "unknown"))
    args = ("--set", f"backend.base_url={peer.url}", "--set", "backend.tokenizer=words", "-m", "peer", *SHORT)
    _said(niah, "--backend", "openai", *args, code=4, sentence="model 'peer' was unloaded")
    assert len(peer.asked) == 1


def test_a_key_in_yaml_is_refused_by_name_and_by_look(niah: Command, tmp_path: Path) -> None:
    for text in (
        "backend: {name: openai, api_key: abc}",
        "backend: {name: openai, options: {headers: [{x-api-key: abc}]}}",
        "backend: {name: openai, served: [sk-proj-abcdefghijklmnop1234]}",
    ):
        path = tmp_path / "run.yaml"
        path.write_text(text)
        err = _said(niah, path, code=2, sentence="Keys come from the environment or .env only")
        assert "sk-proj" not in err
