"""Replies that no honest server sends: each cell ends as answered or failed with a sentence, and within bounds."""

from __future__ import annotations

import copy
import gzip
import json
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from niah.backends.anthropic.adapter import read_message
from niah.backends.gemini.adapter import read_content
from niah.backends.openai.replies import read_chat, read_completion, read_response
from niah.engines.hosted.adapter import Completion
from niah.engines.http import bounded as _bounded
from niah.engines.http.faults import ApiFault, reading
from niah.engines.http.values import odd_counts
from niah.store.read import write_parquet
from tests.engines.hosted import peer as peers
from tests.engines.hosted.peer import Ask, StartPeer

HUGE = 10**30
# what may stand where something else should
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -5,
    1.5,
    HUGE,
    1e308,
    "",
    "text",
    "12",
    [],
    [1],
    [None],
    {},
    {"a": 1},
    {"text": 5},
)
MIB = 2**20


def _paths(found: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in items:
        yield from _paths(value, (*at, key))


def _with(found: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(found)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def _snake(reply: dict[str, Any]) -> dict[str, Any]:
    """Gemini's reply as its SDK gives it, with what else one may hold."""
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "I looked.", "thought": True}, {"text": "123"}]},
                "finish_reason": "STOP",
                "avg_logprobs": -0.25,
            }
        ],
        "usage_metadata": {"prompt_token_count": 9, "candidates_token_count": 3, "thoughts_token_count": 2},
        "response_id": "r",
        "model_version": "peer",
        "prompt_feedback": {"block_reason": None},
    }


def _rich(shape: str) -> dict[str, Any]:
    """A reply with every field that is read."""
    reply = peers.SHAPES[shape]("123", (9, 3), 1)
    if shape == "gemini":
        return _snake(reply)
    if shape == "chat":
        reply["choices"][0]["message"] |= {"reasoning_content": "Hm.", "refusal": None}
        reply["choices"][0]["logprobs"] = {"content": [{"token": "1", "logprob": -0.5}]}
        reply["usage"] |= {
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 1},
        }
    if shape == "completions":
        reply["choices"][0]["logprobs"] = {"token_logprobs": [-0.5, -0.25]}
    if shape == "responses":
        reply["output"][1]["content"][0]["logprobs"] = [{"logprob": -0.5}]
        reply["incomplete_details"] = {"reason": None}
    if shape == "messages":
        reply["usage"]["output_tokens_details"] = {"thinking_tokens": 1}
    return reply


READERS: dict[str, Any] = {
    "chat": lambda reply: read_chat(reply, "i"),
    "completions": lambda reply: read_completion(reply, "i"),
    "responses": lambda reply: read_response(reply, "i"),
    "messages": lambda reply: read_message(reply, "i"),
    "gemini": read_content,
}
COUNTS = ("prompt_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")


def _read(read: Any, reply: dict[str, Any]) -> Completion | ApiFault:
    try:
        with reading("the reply"):
            found: Completion = read(reply)
    except ApiFault as fault:
        return fault
    return found


@pytest.mark.parametrize("shape", READERS)
def test_any_value_in_any_place_of_a_reply(shape: str) -> None:
    rich = _rich(shape)
    read = READERS[shape]
    assert read(rich).text == "123"
    seen = 0
    for path in _paths(rich):
        for value in ODD if path else ():
            reply = _with(rich, path, value)
            said = _read(read, reply)
            if isinstance(said, ApiFault):
                assert said.kind in ("bad_reply", "answer_missing", "server_error"), (path, value)
                assert len(str(said)) < 400
                assert "\n" not in str(said)
                continue
            seen += 1
            assert isinstance(said.text, str), (path, value)
            assert isinstance(said.reasoning, str), (path, value)
            assert said.stop in ("end", "length", "refused"), (path, value)
            assert isinstance(said.identity, str)
            assert isinstance(said.model, str)
            for name in COUNTS:
                count = getattr(said, name)
                assert count is None or (type(count) is int and 0 <= count <= 4 * 10**12), (path, value, name)
            assert said.answer_logprob is None or -1e7 < said.answer_logprob < 0.01, (path, value)
    assert seen > 50


@pytest.mark.parametrize("finish", [{"type": "stop"}, ["stop"], 3, True, 1.5, "x" * 10_000])
@pytest.mark.parametrize(("shape", "field"), [("chat", "finish_reason"), ("messages", "stop_reason")])
def test_an_end_that_is_no_word(shape: str, field: str, finish: Any) -> None:
    reply = _rich(shape)
    (reply["choices"][0] if shape == "chat" else reply)[field] = finish
    with pytest.raises(ApiFault, match=r"the reply ended by .*, which is no end that is known") as caught:
        READERS[shape](reply)
    assert caught.value.kind == "bad_reply"
    assert len(str(caught.value)) < 400


def test_names_of_counts_that_are_none() -> None:
    usage = {"prompt_tokens": HUGE, "completion_tokens": -1, "total_tokens": "12", "cached_tokens": None, "cost": "x"}
    assert odd_counts(usage) == ("prompt_tokens", "completion_tokens", "total_tokens")
    assert odd_counts([1]) == ("usage",)
    assert odd_counts(None) == odd_counts({"prompt_tokens": 3, "prompt_tokens_details": {}}) == ()


@pytest.mark.parametrize("value", [HUGE, -7, 12.5, "12", True, [3], {"a": 1}], ids=str)
@pytest.mark.parametrize("backend", ["openai", "anthropic", "gemini"])
def test_a_count_that_is_none_is_left_out_and_said(start_peer: StartPeer, ask: Ask, backend: str, value: Any) -> None:
    names = {
        "openai": ("usage", "prompt_tokens", "completion_tokens"),
        "anthropic": ("usage", "input_tokens", "output_tokens"),
        "gemini": ("usageMetadata", "promptTokenCount", "candidatesTokenCount"),
    }[backend]

    def spoil(reply: dict[str, Any]) -> None:
        reply[names[0]] |= dict.fromkeys(names[1:], value)

    peer = start_peer(reply_extra=spoil)
    # Gemini's own SDK refuses to read some of them
    run = ask(peer, backend=backend, sets={"attempts": 1}, code=3 if _sdk_refuses(backend, value) else 0)
    assert len(run.rows) == 2
    for row in run.rows:
        if row.outcome == "failed":
            assert row.error_kind == "bad_reply"
            continue
        assert row.correct
        # and takes others for a number
        assert row.engine_prompt_tokens in ((1, 12, None) if backend == "gemini" else (None,))
    if {row.engine_prompt_tokens for row in run.rows} == {None} and run.rows[0].outcome == "answered":
        assert "is no count of tokens" in run.manifest["settings"]["auto"]["effective"]["counts_left_out"]
    table = pq.read_table(write_parquet(run))
    assert table.num_rows == 2


def _sdk_refuses(backend: str, value: Any) -> bool:
    return backend == "gemini" and value in (12.5, [3], {"a": 1})


BIG = b'{"choices": [{"message": {"content": "' + b"x" * MIB


async def _endless(*_: Any) -> Response:
    async def body() -> Any:
        yield BIG
        for _ in range(100):
            yield b"x" * MIB

    return StreamingResponse(body(), media_type="application/json")


async def _endless_error(*_: Any) -> Response:
    reply = await _endless()
    reply.status_code = 400
    return reply


async def _endless_line(*_: Any) -> Response:
    reply = await _endless()
    reply.headers["content-type"] = "text/event-stream"
    return reply


def _packed(packing: str, body: bytes) -> Any:
    async def fault(*_: Any) -> Response:
        return Response(body, headers={"content-encoding": packing}, media_type="application/json")

    return fault


ZEROS = b"0" * (200 * MIB)
RAW = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
BOUND: dict[str, tuple[Any, str]] = {
    "endless": (_endless, "reply_too_large"),
    "endless error": (_endless_error, "reply_too_large"),
    "gzip bomb": (_packed("gzip", gzip.compress(ZEROS, 9)), "reply_too_large"),
    "deflate bomb": (_packed("deflate", zlib.compress(ZEROS, 9)), "reply_too_large"),
    "raw deflate bomb": (_packed("deflate", RAW.compress(ZEROS) + RAW.flush()), "reply_too_large"),
    "brotli": (_packed("br", b"\x0b\x02\x80"), "bad_reply"),
    "zstd": (_packed("zstd", b"\x28\xb5\x2f\xfd"), "bad_reply"),
    "packed twice": (_packed("gzip, gzip", gzip.compress(gzip.compress(ZEROS))), "bad_reply"),
    "not what it says": (_packed("gzip", b"plain"), "bad_reply"),
}


@pytest.fixture
def small_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bounded, "MOST_BYTES", 4 * MIB)


@pytest.mark.usefixtures("small_bound")
@pytest.mark.parametrize("backend", ["openai", "anthropic", "gemini"])
@pytest.mark.parametrize("fault", BOUND)
def test_a_reply_is_read_up_to_a_bound(
    start_peer: StartPeer, ask: Ask, monkeypatch: pytest.MonkeyPatch, backend: str, fault: str
) -> None:
    respond, kind = BOUND[fault]
    monkeypatch.setitem(peers.FAULTS, "odd", respond)
    peer = start_peer(schedule={6: "odd"})
    tracemalloc.start()
    run = ask(peer, backend=backend, sets={"attempts": 1, "concurrency": 1}, code=3)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert {row.error_kind for row in run.rows if row.outcome == "failed"} == {kind}
    assert [row.outcome for row in run.rows].count("answered") == 1
    # the body is held once as bytes and once as text at most, beside what the peer in this process makes of it
    assert most < 120 * MIB
    assert max(len(row.error or "") for row in run.rows) < 500


@pytest.mark.usefixtures("small_bound")
def test_a_stream_is_read_up_to_a_bound(start_peer: StartPeer, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.FAULTS, "odd", _endless_line)
    peer = start_peer(schedule={6: "odd"})
    run = ask(peer, sets={"attempts": 1, "concurrency": 1, "stream": True}, code=3)
    assert {row.error_kind for row in run.rows if row.outcome == "failed"} == {"reply_too_large"}


def test_packed_replies_of_any_usual_kind_are_read(
    start_peer: StartPeer, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packers = {
        "gzip": lambda text: ("gzip", gzip.compress(text)),
        "deflate": lambda text: ("deflate", zlib.compress(text)),
        "raw": lambda text: ("deflate", raw.compress(text) + raw.flush()),
    }
    for name, pack in packers.items():

        async def packed(peer: Any, request: Any, body: Any, shape: Any, pack: Any = pack) -> Response:
            packing, content = pack(peer.good(body, shape).body)
            return Response(content, headers={"content-encoding": packing}, media_type="application/json")

        monkeypatch.setitem(peers.FAULTS, name, packed)
    peer = start_peer(schedule={5: "gzip", 6: "deflate", 7: "raw"})
    run = ask(peer, "-d", "3", sets={"attempts": 1, "concurrency": 1})
    assert all(row.correct for row in run.rows)
    assert len(run.rows) == 3


def test_an_answer_that_was_not_asked_for_is_not_kept(start_peer: StartPeer, ask: Ask) -> None:
    peer = start_peer(answers=lambda text: peers.read(text) + " blah" * 20_000)
    run = ask(peer, sets={"attempts": 1}, code=3)
    assert {row.error_kind for row in run.rows} == {"reply_too_large"}
    assert all(len(row.answer or "") < 100 for row in run.rows)


@pytest.mark.parametrize("stream", [False, True])
def test_wrong_types_over_the_wire(
    start_peer: StartPeer, ask: Ask, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """A few of the table above through the SDK and the session, also as pieces of a stream."""
    odd = [
        {
            "choices": [
                {"index": 0, "message": {"content": {"a": 1}}, "delta": {"content": 5}, "finish_reason": {"x": 1}}
            ]
        },
        {"choices": {"0": 1}},
        {"choices": [{"delta": [1], "message": [1]}], "usage": []},
        {"error": {"message": {"deep": [1]}, "code": "x"}},
        [],
        "text",
        7,
    ]

    def respond(reply: Any) -> Any:
        async def fault(*_: Any) -> Response:
            if not stream:
                return JSONResponse(reply)
            return Response(f"data: {json.dumps(reply)}\n\ndata: [DONE]\n\n", media_type="text/event-stream")

        return fault

    for number, reply in enumerate(odd):
        monkeypatch.setitem(peers.FAULTS, f"odd {number}", respond(reply))
    peer = start_peer(schedule={5 + number: f"odd {number}" for number in range(len(odd))})
    sets = {"attempts": 1, "concurrency": 1, "stream": stream}
    run = ask(peer, "-d", "3", "-n", "3", sets=sets, code=3)
    failed = [row for row in run.rows if row.outcome == "failed"]
    assert len(failed) >= 5
    for row in failed:
        assert row.error_kind in ("bad_reply", "answer_missing", "server_error", "given_up", "connection_lost"), (
            row.error
        )
        assert "Error:" not in row.error
        assert len(row.error) < 500
