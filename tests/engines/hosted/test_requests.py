"""Limits, retries and keys: what is sent, when, how often, and what is never shown."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from niah.engines.hosted.options import ApiOptions, api_key
from niah.engines.hosted.retries import with_retries_now
from niah.engines.http.faults import ApiFault, fault_of_status, retry_after_s
from niah.errors import BackendUnavailable
from niah.registry import load
from tests.engines.hosted.peer import KEY, Ask, Peer, StartPeer
from tests.helpers.command import Command
from tests.helpers.loopback import is_here


def test_concurrency_is_kept_and_used(start_peer: StartPeer, ask: Ask) -> None:
    peer = start_peer(latency_s=0.03)
    ask(peer, "-n", "6", sets={"concurrency": 3})
    assert peer.most_at_once == 3


def test_the_first_question_of_a_context_goes_alone(start_peer: StartPeer, ask: Ask) -> None:
    peer = start_peer(latency_s=0.03)
    ask(peer, "-d", "5", sets={"concurrency": 8})
    assert peer.most_at_once == 4


def test_tokens_per_minute(start_peer: StartPeer, ask: Ask) -> None:
    peer = start_peer()
    started = time.monotonic()
    rate = 60 * 512 * 4  # four cells a second, in a bucket of four
    ask(peer, "-n", "3", sets={"concurrency": 8, "tokens_per_minute": rate})
    # 4 canaries of 256 and 6 cells of 512, less what the bucket holds at the start
    assert time.monotonic() - started > (4 * 256 + 6 * 512 - rate / 60) / (rate / 60)


def test_a_server_that_never_recovers_fails_cells_and_owes_them(start_peer: StartPeer, ask: Ask) -> None:
    peer = start_peer(schedule=dict.fromkeys(range(5, 999), "503"))
    run = ask(peer, "-n", "10", sets={"attempts": 3, "concurrency": 1}, code=3)
    assert len(run.rows) == 20
    assert all(row.correct is None for row in run.rows)
    kinds = [row.error_kind for row in run.rows]
    assert kinds == ["server_error"] * 3 + ["given_up"] * 17
    assert len(peer.asked) == 4 + 3 * 3, "after three cells in a row the rest is left for another day"
    peer.schedule = {}
    run = ask(peer, "-n", "10", sets={"attempts": 3, "concurrency": 1})
    newest = {row.cell_id: row for row in run.rows}
    assert {row.outcome for row in newest.values()} == {"answered"}
    assert {row.attempt for row in newest.values()} == {2}


@pytest.mark.parametrize("backend", ["openai", "anthropic", "gemini"])
@pytest.mark.parametrize("fault", ["429 with Retry-After", "500", "connection reset", "broken JSON", "body cut off"])
def test_every_sdk_leaves_retries_to_us(start_peer: StartPeer, ask: Ask, backend: str, fault: str) -> None:
    peer = start_peer(schedule={6: fault})
    run = ask(peer, backend=backend, sets={"request_timeout_s": 5})
    assert [row.outcome for row in run.rows] == ["answered", "answered"]
    assert sorted(row.requests for row in run.rows) == [1, 2]
    assert len(peer.asked) == 7


@pytest.mark.parametrize("backend", ["openai", "anthropic"])
def test_the_key_is_sent_and_never_shown(
    start_peer: StartPeer,
    ask: Ask,
    niah: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
) -> None:
    peer = start_peer(needs_key=True, schedule={6: "500"})
    monkeypatch.setenv("MY_KEY", KEY)
    ask(peer, backend=backend, sets={"api_key_env": "MY_KEY"})
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert KEY.encode() not in written
    assert b"MY_KEY" in written
    peer.schedule = dict.fromkeys(range(1, 999), "500")
    run = ask(peer, "--fresh", backend=backend, sets={"api_key_env": "MY_KEY", "attempts": 2}, code=3)
    # the peer repeats the Authorization header in its message
    assert "out of order" in run.rows[0].error
    assert KEY not in "".join(file.read_text() for file in run.path.iterdir() if file.is_file())


def test_another_server_gets_the_key_in_both_headers(
    start_peer: StartPeer, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    peer = start_peer(needs_key=True)
    ask(peer, backend="anthropic", sets={"api_key_env": "MY_KEY"})
    for headers in peer.headers:
        assert (headers["x-api-key"], headers["authorization"]) == (KEY, f"Bearer {KEY}")


def test_a_wrong_key_stops_at_once_with_one_message(
    start_peer: StartPeer, niah: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = start_peer(needs_key=True)
    monkeypatch.setenv("MY_KEY", "wrong-key-0123456789")
    args = ("--set", f"backend.base_url={peer.url}", "--set", "backend.api_key_env=MY_KEY", "-m", "peer", "-l", "512")
    said = niah("run", "--backend", "openai", *args)
    assert said.code == 4
    assert said.err.count("refuses the key (401)") == 1
    assert "wrong-key" not in said.err + said.out
    assert not peer.asked


def test_a_key_goes_to_its_own_provider_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-openai-only-123")
    own = "https://api.openai.com/v1"
    assert api_key(ApiOptions(), ("OPENAI_API_KEY",), own) == "sk-for-openai-only-123"
    assert api_key(ApiOptions(base_url="http://127.0.0.1:1/v1"), ("OPENAI_API_KEY",), own) is None
    elsewhere = ApiOptions(base_url="https://example.org/v1", api_key_env="OPENAI_API_KEY")
    assert api_key(elsewhere, (), own) == "sk-for-openai-only-123"


def test_a_key_from_the_env_file(
    start_peer: StartPeer, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_FILE_KEY", "")
    monkeypatch.delenv("MY_FILE_KEY")
    (tmp_path / ".env").write_text(f"MY_FILE_KEY={KEY}\n")
    run = ask(start_peer(needs_key=True), sets={"api_key_env": "MY_FILE_KEY"})
    assert len(run.rows) == 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, "", None),
        (403, "", None),
        (404, '{"error": {"message": "no such model"}}', None),
        (302, "", None),
        (429, '{"error": {"code": "insufficient_quota"}}', None),
        (429, "slow down", "rate_limited"),
        (500, "", "server_error"),
        (529, "overloaded", "server_error"),
        (408, "", "server_error"),
        (400, '{"error": {"type": "exceed_context_size_error"}}', "context_too_long"),
        (400, '{"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}', "context_too_long"),
        (413, "", "context_too_long"),
        (400, '{"error": {"code": "content_filter"}}', "refused"),
        (400, "temperature is not supported", "bad_request"),
        (422, "", "bad_request"),
    ],
)
def test_what_a_status_means(status: int, body: str, kind: str | None) -> None:
    fault = fault_of_status(status, body, {}, "the server")
    if kind is None:
        assert isinstance(fault, BackendUnavailable)
    else:
        assert isinstance(fault, ApiFault)
        assert fault.kind == kind
        assert fault.retryable == (kind in ("rate_limited", "server_error"))


def test_what_will_not_change_is_asked_once() -> None:
    asked: list[int] = []

    def ask_once() -> None:
        asked.append(1)
        raise fault_of_status(400, "no", {}, "the server")

    with pytest.raises(Exception, match="refused the request"):
        with_retries_now(ApiOptions(retry_wait_s=0.01), ask_once)
    assert len(asked) == 1


def test_certificates_are_always_verified() -> None:
    import ssl

    from niah.engines.hosted.sdk import http_arguments

    context = http_arguments(ApiOptions(), "https://example.org")["verify"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    options = {
        name for backend in ("openai", "anthropic", "gemini") for name in load("backends", backend).options.model_fields
    }
    assert not [name for name in options if "verify" in name or "insecure" in name]


def test_no_test_leaves_loopback() -> None:
    import socket

    assert not is_here("10.0.0.1")
    assert not is_here("example.org")
    with socket.socket() as sock, pytest.raises(OSError, match=r"may not connect"):
        sock.connect(("192.0.2.1", 80))
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("example.org", 443)

    async def out() -> None:
        await asyncio.open_connection("192.0.2.1", 80)

    with pytest.raises(OSError, match=r"may not connect"):
        asyncio.run(out())


def test_a_parrot_scores_nothing(start_peer: StartPeer, ask: Ask) -> None:
    def parrot(text: str) -> str:
        return text

    def wide(reply: dict[str, Any]) -> None:
        reply["choices"][0]["finish_reason"] = "stop"

    for answers in (parrot, lambda text: text.splitlines()[-1]):
        peer: Peer = start_peer(answers=answers, reply_extra=wide)
        run = ask(peer, "--fresh", "-n", "3", code=0)
        assert [row.correct for row in run.rows] == [False] * 6


@pytest.mark.parametrize("limit", ["tokens_per_minute", "batch_tokens"])
def test_a_cell_larger_than_a_limit_is_refused(start_peer: StartPeer, niah: Command, limit: str) -> None:
    peer = start_peer()
    sets = (f"backend.base_url={peer.url}", "backend.tokenizer=words", f"backend.{limit}=400")
    pairs = [part for pair in sets for part in ("--set", pair)]
    said = niah("run", "--backend", "openai", "-m", "peer", "-l", "512", "-d", "2", "-n", "1", *pairs)
    assert said.code == 2
    assert f"never fits into backend.{limit}=400" in said.err


def test_a_reply_that_is_no_answer_is_paid_for_all_the_same(start_peer: StartPeer, ask: Ask) -> None:
    price = ("--set", "price.input_usd=2", "--set", "price.output_usd=8")
    spent = []
    for schedule in ({}, {6: "empty answer"}):
        run = ask(start_peer(schedule=schedule), *price, "--fresh")
        assert {row.outcome for row in run.rows} == {"answered"}
        spent.append(run.manifest["spent"])
    clean, faulty = spent
    # the peer says 9 prompt tokens and no output of an empty answer
    assert faulty["beside_tokens"] - clean["beside_tokens"] == 9
    assert faulty["beside_usd"] - clean["beside_usd"] == pytest.approx(9 * 2 / 1e6)
    assert faulty["cost_usd"] - clean["cost_usd"] == pytest.approx(9 * 2 / 1e6)
