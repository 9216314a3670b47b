"""A small server of token ids on loopback: it says what it is told to say to each prompt, or fails as it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

END = 2


def logprob(token: int) -> float:
    """Of any token, wherever it stands."""
    return -(token % 7 + 1) / 8


@dataclass
class TokenPeer:
    """The server and what it has seen.

    Attributes:
        answers: what it says to each prompt, by its ids; an ``END`` at its end is the end of the sequence.
        faults: what happens to a streamed request, by its number from 1.
        prompts: ids of the streamed requests, in order.
        scored: ids of the other requests.
    """

    answers: dict[tuple[int, ...], list[int]] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    latency_s: float = 0.0
    prompts: list[list[int]] = field(default_factory=list)
    scored: list[list[int]] = field(default_factory=list)
    cache: list[list[int]] = field(default_factory=list)
    most_at_once: int = 0
    at_once: int = 0
    url: str = ""

    def __post_init__(self) -> None:
        self.lock = threading.Lock()

    def cached(self, ids: Sequence[int]) -> int:
        """Tokens of the longest prefix that it has seen already; it is seen afterwards."""
        longest = 0
        for seen in self.cache:
            common = next((i for i, (a, b) in enumerate(zip(seen, ids, strict=False)) if a != b), None)
            longest = max(longest, min(len(seen), len(ids)) if common is None else common)
        self.cache.append(list(ids))
        return longest

    def events(self, body: dict[str, Any], fault: str) -> Iterator[dict[str, Any]]:
        ids = body["input_ids"]
        cached = self.cached(ids) if body["reuse"] else 0
        reply = self.answers[tuple(ids)][: body["max_new_tokens"]]
        for at, token in enumerate(reply):
            if fault == "cut" and at == 1:
                return
            is_last = at == len(reply) - 1
            finish = ("stop" if token == END else "length") if is_last else None
            counts = {"prompt": len(ids) + (fault == "miscounts"), "output": at + 1, "cached": cached}
            yield {"ids": [token], "logprobs": [[token, logprob(token)]], "finish": finish, "counts": counts}


@contextmanager
def serve(peer: TokenPeer) -> Iterator[TokenPeer]:
    """The peer, listening."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not body.get("stream"):
                peer.scored.append(body["input_ids"])
                self._reply(200, json.dumps({"logprob": logprob(body["next"])}).encode())
                return
            with peer.lock:
                peer.prompts.append(body["input_ids"])
                fault = peer.faults.get(len(peer.prompts), "")
                peer.at_once += 1
                peer.most_at_once = max(peer.most_at_once, peer.at_once)
            time.sleep(peer.latency_s)
            if fault == "dies":
                server.socket.close()
                self.connection.close()
            elif fault.isdecimal():
                self._reply(int(fault), b'{"error": {"message": "as it was told"}}')
            else:
                lines = [f"data: {json.dumps(event)}\n\n" for event in peer.events(body, fault)]
                end = "" if fault == "cut" else "data: [DONE]\n\n"
                self._reply(200, ("".join(lines) + end).encode())
            with peer.lock:
                peer.at_once -= 1

        def _reply(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's own name
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    peer.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield peer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
