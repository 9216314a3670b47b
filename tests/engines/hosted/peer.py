"""A server of the tests' own, on loopback: it reads the prompt and answers from it, or misbehaves as it is told.

It speaks OpenAI's chat, completions and responses, Anthropic's messages and Gemini's generateContent, each as far as
niah uses it, and counts tokens by ``WordTokenizer``.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from niah.prompts.tokens import WordTokenizer
from tests.engines.hosted.batch_desk import Desk

ASKED = re.compile(r"What is the special magic (\w+) for ([^?]+?) mentioned")
OVERHEAD = 5
KEY = "right-key-0123456789"
GONE_S = 0.8

Usage = tuple[int, int]
Fault = Callable[["Peer", Request, dict[str, Any]], Any]
StartPeer = Callable[..., "Peer"]
# a run against a peer: its record, or what the command said where it kept none
Ask = Callable[..., Any]


def read(text: str) -> str:
    """The value that the question asks for, as a perfect reader finds it."""
    asked = ASKED.findall(text)
    if not asked:
        return "nothing was asked"
    kind, key = asked[-1]
    found = re.search(rf"special magic {kind} for {re.escape(key)} is ([\w-]+)\.", text)
    return found.group(1) if found else "not found"


@dataclass
class Peer:
    """The server and what it has seen.

    Attributes:
        answers: text to reply, from the prompt's text.
        schedule: which answer request (counted from 1) gets which fault.
        hold_after: answers after which requests are held, until ``release``; a run can be killed in between.
        asked: the value that each answer request asked for, in order.
        delivered: tokens of the last answer that was given in full, by the value that was asked for.
    """

    answers: Callable[[str], str] = read
    schedule: Mapping[int, str] = field(default_factory=dict)
    context: int | None = 100_000
    owner: str = "tests"
    models: tuple[str, ...] = ("peer",)
    counts: bool = True
    latency_s: float = 0.0
    needs_key: bool = False
    hold_after: int | None = None
    reply_extra: Callable[[dict[str, Any]], None] = lambda _: None
    asked: list[str] = field(default_factory=list)
    delivered: dict[str, Usage] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    most_at_once: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self.last_body = b""
        self._released = threading.Event()
        self._at_once = 0
        self._away: threading.Thread | None = None
        self._tokenizer = WordTokenizer()
        self.desk = Desk(self)
        self.start()

    # starting and stopping

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def start(self) -> None:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", self.port))
        self.port = sock.getsockname()[1]
        config = uvicorn.Config(self._app(), log_level="critical", lifespan="off", timeout_keep_alive=30, ws="none")
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(sock),), daemon=True)
        self._thread.start()
        while not self.server.started:
            time.sleep(0.002)

    async def _serve(self, sock: socket.socket) -> None:
        """Until it is told to exit, and with every connection closed: one that is not would be told on another test."""
        await self.server.serve(sockets=[sock])
        for connection in list(self.server.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0.01)

    def stop(self) -> None:
        self.release()
        if self._away is not None:
            self._away.join(10)
        self.server.should_exit = self.server.force_exit = True
        self._thread.join(10)

    def go_away(self, seconds: float = GONE_S) -> None:
        """Gone for a while: nothing listens on the port."""
        with self.lock:
            if self._away is not None and self._away.is_alive():
                return
            self._away = threading.Thread(target=self._be_away, args=(seconds,), daemon=True)
            self._away.start()

    def _be_away(self, seconds: float) -> None:
        self.server.should_exit = self.server.force_exit = True
        self._thread.join(10)
        time.sleep(seconds)
        self.start()

    def release(self) -> None:
        self.hold_after = None
        self._released.set()

    # what it says

    def _app(self) -> Starlette:
        post = ["POST"]
        return Starlette(
            routes=[
                Route("/v1/models", self._models),
                Route("/v1beta/models", self._gemini_models),
                Route("/tokenize", self._tokenize, methods=post),
                Route("/v1/messages/count_tokens", self._count_messages, methods=post),
                Route("/v1/chat/completions", self._answer("chat"), methods=post),
                Route("/v1/completions", self._answer("completions"), methods=post),
                Route("/v1/responses", self._answer("responses"), methods=post),
                Route("/v1/messages", self._answer("messages"), methods=post),
                Route("/v1beta/models/{model}:generateContent", self._answer("gemini"), methods=post),
                Route("/v1beta/models/{model}:countTokens", self._count_gemini, methods=post),
                *self.desk.routes(),
            ]
        )

    def tokens(self, text: str) -> int:
        return len(self._tokenizer.encode(text)) + OVERHEAD

    async def _models(self, request: Request) -> Response:
        if refusal := self._key_refused(request):
            return refusal
        cards: list[dict[str, object]] = [
            {"id": name, "object": "model", "owned_by": self.owner} for name in self.models
        ]
        if self.context:
            cards = [card | {"max_model_len": self.context} for card in cards]
        return JSONResponse({"object": "list", "data": cards, "has_more": False})

    async def _gemini_models(self, request: Request) -> Response:
        cards = [{"name": f"models/{name}", "inputTokenLimit": self.context, "version": "1"} for name in self.models]
        return JSONResponse({"models": cards})

    async def _tokenize(self, request: Request) -> Response:
        body = await request.json()
        if not self.counts or ("messages" not in body and "prompt" not in body):
            return JSONResponse({"error": {"message": "no such path"}}, 404)
        return JSONResponse({"count": self.tokens(text_of(body)), "tokens": [], "max_model_len": self.context})

    async def _count_messages(self, request: Request) -> Response:
        if not self.counts:
            return JSONResponse({"error": {"message": "no such path"}}, 404)
        return JSONResponse({"input_tokens": self.tokens(text_of(await request.json()))})

    async def _count_gemini(self, request: Request) -> Response:
        return JSONResponse({"totalTokens": self.tokens(text_of(await request.json()))})

    def _key_refused(self, request: Request) -> Response | None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get("x-api-key")
        if not self.needs_key or given == KEY:
            return None
        return JSONResponse({"error": {"message": f"Incorrect API key provided: {given}"}}, 401)

    def _answer(self, shape: str) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            body = await request.json()
            with self.lock:
                number = len(self.asked) + 1
                self.asked.append(read(text_of(body)))
                self.bodies = [*self.bodies[-8:], body]
                self.headers = [*self.headers[-8:], dict(request.headers)]
                self._at_once += 1
                self.most_at_once = max(self.most_at_once, self._at_once)
            try:
                if refusal := self._key_refused(request):
                    return refusal
                while self.hold_after is not None and len(self.delivered) >= self.hold_after:
                    await asyncio.sleep(0.005)
                if self.latency_s:
                    await asyncio.sleep(self.latency_s)
                fault = self.schedule.get(number)
                if fault is not None:
                    found = await FAULTS[fault](self, request, body, shape)
                    if found is not None:
                        return found
                return self.good(body, shape)
            finally:
                with self.lock:
                    self._at_once -= 1

        return answer

    def reply_to(self, body: dict[str, Any]) -> tuple[str, Usage]:
        """Words and usage of the right answer, noted as delivered."""
        text = text_of(body)
        words = self.answers(text)
        counts = (self.tokens(text), len(self._tokenizer.encode(words)))
        with self.lock:
            self.asked.append(read(text))
            self.bodies = [*self.bodies[-8:], body]
            self.delivered[read(text)] = counts
        return words, counts

    @staticmethod
    def shaped(shape: str, words: str, counts: Usage, number: int) -> dict[str, Any]:
        return SHAPES[shape](words, counts, number)

    def good(self, body: dict[str, Any], shape: str, *, usage: Usage | None = None) -> Response:
        """The right answer, in full."""
        text = text_of(body)
        words = self.answers(text)
        counts = usage or (self.tokens(text), len(self._tokenizer.encode(words)))
        with self.lock:
            self.delivered[read(text)] = counts
            number = len(self.asked)
        reply = SHAPES[shape](words, counts, number)
        self.reply_extra(reply)
        if body.get("stream"):
            return StreamingResponse(_events(chunks(reply)), media_type="text/event-stream")
        self.last_body = json.dumps(reply).encode()
        return Response(self.last_body, media_type="application/json")

    async def abort(self, request: Request) -> Response:
        """Reset the connection that a request came by."""
        for connection in list(self.server.server_state.connections):
            if getattr(connection, "client", None) == tuple(request.scope["client"]):
                connection.transport.abort()
        return Response(b"")


async def _events(events: list[dict[str, Any]], *, ends: bool = True) -> AsyncIterator[str]:
    for event in events:
        yield f"data: {json.dumps(event)}\n\n"
    if ends:
        yield "data: [DONE]\n\n"


def text_of(body: Mapping[str, Any]) -> str:
    """All text of a request, whatever its shape."""
    if "messages" in body:
        return "".join(_flat(message["content"]) for message in body["messages"])
    if "contents" in body:
        return "".join(_flat(content["parts"]) for content in body["contents"])
    return _flat(body.get("prompt") or body.get("input") or "")


def _flat(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _head(number: int) -> dict[str, Any]:
    return {"id": f"reply-{number}", "created": number, "model": "peer"}


def _usage(usage: Usage) -> dict[str, Any]:
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}


def _chat(words: str, usage: Usage, number: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": words}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {**_head(number), "object": "chat.completion", "choices": [choice], "usage": _usage(usage)}


def _completions(words: str, usage: Usage, number: int) -> dict[str, Any]:
    choice = {"index": 0, "text": words, "finish_reason": "stop"}
    return {**_head(number), "object": "text_completion", "choices": [choice], "usage": _usage(usage)}


def _responses(words: str, usage: Usage, number: int) -> dict[str, Any]:
    thought = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "I looked."}]}
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}
    counts = {"input_tokens": usage[0], "output_tokens": usage[1], "input_tokens_details": {"cached_tokens": 3}}
    return {**_head(number), "status": "completed", "output": [thought, message], "usage": counts}


def _messages(words: str, usage: Usage, number: int) -> dict[str, Any]:
    counts = {"input_tokens": usage[0] - 7, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3}
    content = [{"type": "thinking", "thinking": "I looked."}, {"type": "text", "text": words}]
    return {
        **_head(number),
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": "end_turn",
        "usage": counts | {"output_tokens": usage[1]},
    }


def _gemini(words: str, usage: Usage, number: int) -> dict[str, Any]:
    parts = [{"text": "I looked.", "thought": True}, {"text": words}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "avgLogprobs": -0.25}
    counts = {"promptTokenCount": usage[0], "candidatesTokenCount": usage[1], "thoughtsTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": counts, "responseId": f"reply-{number}", "modelVersion": "peer"}


SHAPES = {
    "chat": _chat,
    "completions": _completions,
    "responses": _responses,
    "messages": _messages,
    "gemini": _gemini,
}


def chunks(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A chat completion or completion in the pieces of a stream."""
    choice = reply["choices"][0]
    head = {key: reply[key] for key in ("id", "created", "model")}
    words = choice["message"]["content"] if "message" in choice else choice["text"]
    half = len(words) // 2

    def piece(text: str, finish: str | None = None) -> dict[str, Any]:
        delta: dict[str, Any] = {"delta": {"content": text}} if "message" in choice else {"text": text}
        return {**head, "choices": [{"index": 0, "finish_reason": finish, **delta}]}

    end = {**head, "choices": [], "usage": reply["usage"]}
    return [piece(words[:half]), piece(words[half:]), piece("", choice["finish_reason"]), end]


# faults: each returns the response, or None where the right answer is to follow


def _status(code: int, headers: Mapping[str, str] | None = None) -> Any:
    async def fault(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
        message = f"out of order, key {request.headers.get('authorization', '')}"
        return JSONResponse({"error": {"message": message}}, code, headers)

    return fault


async def _slow_head(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
    reply = peer.good(body, shape)  # it has worked, and would bill it
    await asyncio.sleep(1.0)
    return reply


async def _slow_body(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
    whole = json.dumps(_chat(read(text_of(body)), (1, 1), 0)).encode()

    async def halves() -> AsyncIterator[bytes]:
        yield whole[:40]
        await asyncio.sleep(1.0)
        yield whole[40:]

    return StreamingResponse(halves(), media_type="application/json")


async def _reset(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
    return await peer.abort(request)


async def _cut_body(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
    whole = json.dumps(_chat(read(text_of(body)), (1, 1), 0)).encode()

    async def part() -> AsyncIterator[bytes]:
        yield whole[:40]
        await asyncio.sleep(0.01)
        await peer.abort(request)

    return StreamingResponse(part(), headers={"content-length": str(len(whole))}, media_type="application/json")


async def _cut_stream(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
    events = chunks(_chat("0000000", (1, 1), len(peer.asked)))[:2]
    return StreamingResponse(_events(events, ends=False), media_type="text/event-stream")


async def _broken_json(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
    return Response(b'{"choices": [{"message": {"content": "000', media_type="application/json")


async def _empty(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
    return JSONResponse(_chat("", (9, 0), len(peer.asked)))


async def _other_field(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
    reply = _chat("", (9, 3), len(peer.asked))
    reply["choices"][0] |= {"text": "0000000", "message": {"role": "assistant", "content": None}}
    return JSONResponse(reply)


async def _wrong_usage(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
    text = text_of(body)
    return peer.good(body, shape, usage=(peer.tokens(text) + 1000, 3))


async def _duplicate(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
    return Response(peer.last_body, media_type="application/json")


async def _gone(peer: Peer, request: Request, body: dict[str, Any], shape: str) -> Response:
    peer.go_away()
    return await peer.abort(request)


FAULTS: dict[str, Any] = {
    "429 with Retry-After": _status(429, {"Retry-After": "0.2"}),
    "429 without Retry-After": _status(429),
    "500": _status(500),
    "502": _status(502),
    "503": _status(503),
    "timeout before the reply": _slow_head,
    "timeout in the middle of a body": _slow_body,
    "connection reset": _reset,
    "body cut off": _cut_body,
    "stream cut off": _cut_stream,
    "broken JSON": _broken_json,
    "empty answer": _empty,
    "answer in another field": _other_field,
    "wrong usage": _wrong_usage,
    "duplicate reply": _duplicate,
    "401 in mid-run": _status(401),
    "server gone for a while": _gone,
}
