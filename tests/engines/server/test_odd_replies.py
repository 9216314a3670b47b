"""Engines behind a local server that reply with values of any kind: an answer each, or a failure with a name."""

from __future__ import annotations

import asyncio
import copy
import json
from array import array
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from niah.backends.llamacpp.options import LlamaCppOptions
from niah.backends.llamacpp.token_server import LlamaCppTokenServer
from niah.backends.vllm_server.facts import Facts
from niah.backends.vllm_server.options import VllmServerOptions
from niah.backends.vllm_server.sampler import Watch
from niah.backends.vllm_server.token_server import VllmTokenServer
from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.server.http import HttpClient
from niah.engines.server.token_session import TokenSession
from niah.errors import CellError
from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from niah.prompts.tokens import COMPLETION, WordTokenizer
from niah.types import Answer, Case, Failure, Prompt

ODD: tuple[Any, ...] = (None, True, -5, 1.5, 10**30, float("nan"), float("inf"), "text", "12", [], [1], {}, {"a": 1})
MOST = 2**53
TOKENIZER = WordTokenizer()
IDS = TOKENIZER.encode_batch(["one two three four"])[0]
TAIL, GOLD = (ids[-2:] for ids in TOKENIZER.encode_batch([" five six", " seven eight"]))
PROMPT = Prompt(
    context=array("i", IDS),
    tail=array("i", TAIL),
    gold=tuple(GOLD),
    answer_budget=8,
    case=Case(0.5, (), "", "", "", ("seven",), "seven", (), "exact"),
    depth_real=0.5,
    placements=(),
    sha256="",
    context_key="",
)
INFO = ModelInfo("m", "m", "r", TOKENIZER, COMPLETION)
REQUEST = SessionRequest(KVConfig("fp16", Plain("fp16"), Plain("fp16")), 64, reuse=True, is_complete=lambda *_: False)

LLAMA = (
    {"content": " seven", "tokens_predicted": 1, "completion_probabilities": [{"id": GOLD[0], "logprob": -0.5}]},
    {
        "content": "",
        "stop": True,
        "stop_type": "eos",
        "tokens_predicted": 2,
        "tokens_evaluated": PROMPT.token_count,
        "timings": {"cache_n": 3, "prompt_ms": 12.5},
    },
)
LLAMA_STEP = {"completion_probabilities": [{"id": GOLD[1], "logprob": -0.25}]}


def _choice(token: int, finish: str | None, **more: Any) -> dict[str, Any]:
    tops = [{f"token_id:{each}": -0.5 for each in GOLD}]
    return {
        "index": 0,
        "text": " x",
        "token_ids": [token],
        "finish_reason": finish,
        "logprobs": {"top_logprobs": tops},
        **more,
    }


VLLM = (
    {"choices": [_choice(GOLD[0], None, prompt_token_ids=PROMPT.ids())]},
    {"choices": [_choice(7, "stop")]},
    {
        "choices": [],
        "usage": {
            "prompt_tokens": PROMPT.token_count,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 3},
        },
    },
)
VLLM_STEP = {"choices": [_choice(GOLD[1], "length")]}


class _Client:
    """An ``HttpClient`` that has its replies already."""

    base_url = "http://127.0.0.1:1"

    def __init__(self, events: Any, step: Any) -> None:
        self._events, self._step = events, step

    async def events(self, path: str, body: Mapping[str, Any], is_last: Any = None) -> AsyncIterator[dict[str, Any]]:
        for event in self._events:
            yield event

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self._step)

    async def text(self, path: str) -> str:
        return ""

    async def is_healthy(self) -> bool:
        return True


def _llamacpp(client: Any) -> TokenSession[None]:
    report = SimpleNamespace(
        logical_bytes=lambda tokens: 8 * tokens,
        held_bytes=lambda tokens: 8 * tokens,
        pool_bytes=512,
        effective=dict,
        parts=(),
    )
    server = LlamaCppTokenServer(LlamaCppOptions(), INFO, REQUEST, client, report, {})  # type: ignore[arg-type]
    return TokenSession(server, INFO, REQUEST, None)


def _vllm(client: Any) -> TokenSession[Watch]:
    facts = Facts("m", "u", "1", 64, None)
    server = VllmTokenServer(VllmServerOptions(), INFO, REQUEST, client, facts, is_own=False)
    return TokenSession(server, INFO, REQUEST, None)


ENGINES: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "llamacpp": (_llamacpp, LLAMA, LLAMA_STEP),
    "vllm-server": (_vllm, VLLM, VLLM_STEP),
}


def _paths(found: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list | tuple) else ()
    for key, value in items:
        yield from _paths(value, (*at, key))


def _with(found: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(found)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize("engine", ENGINES)
def test_any_value_in_any_place_of_a_reply(engine: str) -> None:
    make, events, step = ENGINES[engine]
    whole = {"events": [dict(event) for event in events], "step": dict(step)}

    async def ask(reply: dict[str, Any]) -> Any:
        return (await make(_Client(reply["events"], reply["step"])).answer([PROMPT]))[0]

    good = asyncio.run(ask(whole))
    assert isinstance(good, Answer), good
    assert good.cached_tokens == 3
    assert good.logprob == pytest.approx(-0.75 if engine == "llamacpp" else -1.0)
    answered = failed = 0
    for path in _paths(whole):
        for value in ODD if len(path) > 2 else ():
            reply = asyncio.run(ask(_with(whole, path, value)))
            if isinstance(reply, Failure):
                failed += 1
                assert reply.kind in ("bad_reply", "prompt_changed"), (path, value, reply)
                assert "Error:" not in reply.message, (path, value, reply)
                continue
            answered += 1
            assert isinstance(reply.text, str)
            for count in (reply.prompt_tokens, reply.output_tokens, reply.cached_tokens, reply.memory.tokens):
                assert count is None or (type(count) is int and 0 <= count < MOST), (path, value, reply)
            assert reply.logprob is None or -1e9 < reply.logprob < 0.01, (path, value, reply)
            json.dumps(reply.timing.prefill_s, allow_nan=False)
    assert answered > 20
    assert failed > 20


@pytest.mark.parametrize("packing", ["", "gzip", "br"])
def test_a_local_server_is_read_up_to_a_bound(start_odd_server: Any, packing: str) -> None:
    url = start_odd_server(packing)

    async def ask() -> None:
        client = HttpClient(url, 20.0)
        try:
            await client.post("/completion", {})
        finally:
            await client.close()

    with pytest.raises(CellError) as caught:
        asyncio.run(ask())
    assert caught.value.kind == ("bad_reply" if packing == "br" else "reply_too_large")


@pytest.fixture
def start_odd_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server on loopback whose replies have no end, or are 200 MB once they are unpacked."""
    import gzip
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    from niah.engines.http import bounded as _bounded

    monkeypatch.setattr(_bounded, "MOST_BYTES", 2**22)
    servers = []

    def start(packing: str) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                if packing:
                    self.send_header("content-encoding", packing)
                self.end_headers()
                pieces = [gzip.compress(b"0" * 200 * 2**20)] if packing == "gzip" else [b"x" * 2**20] * 100
                try:
                    for piece in pieces:
                        self.wfile.write(piece)
                except OSError:
                    return  # the other end has had enough

            def log_message(self, *_: Any) -> None:
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
