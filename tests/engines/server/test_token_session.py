"""A session of token ids against a server of its own kind: all that a backend of a further server has to bring."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.http.values import count_at, logprob_of, token_ids
from niah.engines.server.http import HttpClient
from niah.engines.server.token_session import StreamDelta, TokenServer, TokenSession
from niah.errors import BackendUnavailable
from niah.kv.config import KVConfig
from niah.prompts.tokens import COMPLETION, WordTokenizer
from niah.types import Answer, Case, Failure, KVUsage, Prompt, Reply
from tests.engines.server.token_peer import END, TokenPeer, logprob, serve

TOKENIZER = WordTokenizer()
INFO = ModelInfo("m", "m", "r", TOKENIZER, COMPLETION)


class PlainServer(TokenServer[None]):
    """The words of ``TokenPeer``, as a backend would write them for its server."""

    name = "plain"
    path = "/generate"
    max_tokens = 64

    def __init__(self, client: HttpClient, *, reuse: bool = True, at_once: int = 1, reads_to_end: bool = True) -> None:
        super().__init__(client)
        self._reuse, self.max_in_flight = reuse, at_once
        self.reads_to_end = reads_to_end  # type: ignore[misc]

    def body(self, prompt: Prompt) -> dict[str, Any]:
        ids = {"input_ids": prompt.ids(), "max_new_tokens": prompt.answer_budget}
        return ids | {"stream": True, "reuse": self._reuse}

    def deltas(self, event: Mapping[str, Any]) -> Iterator[StreamDelta]:
        yield StreamDelta(
            token_ids=token_ids(event["ids"]),
            logprobs=[{token: logprob_of(value)} for token, value in event["logprobs"]],
            finish={None: "", "stop": "end", "length": "length"}[event["finish"]],
            prompt_tokens=count_at(event["counts"], "prompt", None),
            output_tokens=count_at(event["counts"], "output", None),
            cached_tokens=count_at(event["counts"], "cached", None),
        )

    async def score(self, prompt: Prompt, positions: range) -> Sequence[float | None]:
        values = []
        for position in positions:
            ids = [*prompt.ids(), *prompt.gold[:position]]
            reply = await self.client.post(self.path, {"input_ids": ids, "next": prompt.gold[position]})
            values.append(logprob_of(reply["logprob"]))
        return values

    def in_flight(self) -> AbstractContextManager[None]:
        return nullcontext()

    def memory(self, prompt: Prompt, generated: int, watch: None) -> KVUsage:
        return KVUsage(tokens=prompt.token_count + generated - 1)

    def effective(self) -> dict[str, Any]:
        return {"server": self.client.base_url}


def _ids(text: str) -> list[int]:
    return TOKENIZER.encode_batch([text])[0]


def _prompt(context: str, question: str, gold: str = " seven eight") -> Prompt:
    case = Case(0.5, (), "", question, "", ("seven",), gold, (), "exact")
    return Prompt(array("i", _ids(context)), array("i", _ids(question)), tuple(_ids(gold)), 8, case, 0.5, (), "", "")


FIRST, SECOND = _prompt("one two three four", " five"), _prompt("one two three four", " six")


def _ask(peer: TokenPeer, *groups: list[Prompt], complete: str = "", **settings: Any) -> list[list[Reply]]:
    """Replies to groups that are asked at the same time."""

    async def run() -> list[list[Reply]]:
        client = HttpClient(peer.url, 20)
        server = PlainServer(client, **settings)
        kv = KVConfig("auto")
        request = SessionRequest(kv, 64, reuse=True, is_complete=lambda text, _: bool(complete) and complete in text)
        session = TokenSession(server, INFO, request, None)
        try:
            assert session.effective() == {"server": peer.url}
            return list(await asyncio.gather(*(session.answer(group) for group in groups)))
        finally:
            await client.close()

    return asyncio.run(run())


def _answers(*said: tuple[Prompt, list[int]]) -> dict[tuple[int, ...], list[int]]:
    return {tuple(prompt.ids()): ids for prompt, ids in said}


def test_answers_in_order_with_what_was_cached_and_the_score_of_the_expected_answer() -> None:
    right, wrong = _ids(" seven eight"), _ids(" nine ten")
    peer = TokenPeer(_answers((FIRST, [*right, END]), (SECOND, [*wrong, *wrong])))
    with serve(peer):
        ((one, two),) = _ask(peer, [FIRST, SECOND])
    assert isinstance(one, Answer)
    assert isinstance(two, Answer)
    assert (one.text, one.stop, one.output_tokens) == (" seven eight", "end", len(right) + 1)
    assert (two.text, two.stop, two.output_tokens) == (" nine ten nine ten", "length", 8)
    assert peer.prompts == [FIRST.ids(), SECOND.ids()]
    assert FIRST.ids()[: two.cached_tokens] == SECOND.ids()[: two.cached_tokens]
    assert (one.cached_tokens, two.cached_tokens >= len(FIRST.context)) == (0, True)
    assert (one.prompt_tokens, one.memory.tokens) == (FIRST.token_count, FIRST.token_count + len(right))
    gold = sum(logprob(token) for token in right)
    assert one.logprob == pytest.approx(gold), "the reply's own steps have said it"
    assert two.logprob == pytest.approx(gold)
    assert peer.scored == [[*SECOND.ids(), *right[:at]] for at in range(len(right))], (
        "only what the reply does not say is asked for"
    )
    assert 0 < one.timing.prefill_s == one.timing.first_token_s <= one.timing.total_s


def test_without_reuse_nothing_is_cached() -> None:
    peer = TokenPeer(_answers((FIRST, _ids(" seven")), (SECOND, _ids(" seven"))))
    with serve(peer):
        (replies,) = _ask(peer, [FIRST, SECOND], reuse=False)
    assert [reply.cached_tokens for reply in replies if isinstance(reply, Answer)] == [0, 0]


@pytest.mark.parametrize("reads_to_end", [True, False])
def test_the_answer_ends_where_it_is_complete(reads_to_end: bool) -> None:
    peer = TokenPeer(_answers((FIRST, _ids(" seven eight nine ten"))))
    with serve(peer):
        ((reply,),) = _ask(peer, [FIRST], complete="seven", reads_to_end=reads_to_end)
    assert isinstance(reply, Answer)
    assert (reply.text, reply.stop, reply.output_tokens) == (" seven", "stop", 2)
    # what a server goes on to generate is stored too
    assert reply.memory.tokens == FIRST.token_count + (7 if reads_to_end else 1)


@pytest.mark.parametrize("at_once", [1, 3])
def test_requests_in_flight_over_all_groups(at_once: int) -> None:
    prompts = [_prompt("one two three four", f" {word}") for word in ("a", "b", "c", "d", "e", "f")]
    peer = TokenPeer(_answers(*((prompt, _ids(" seven")) for prompt in prompts)), latency_s=0.1)
    with serve(peer):
        replies = _ask(peer, prompts[:3], prompts[3:], at_once=at_once)
    assert all(isinstance(reply, Answer) for group in replies for reply in group)
    assert peer.most_at_once == at_once
    if at_once == 1:
        assert peer.prompts == [prompt.ids() for prompt in prompts]


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("500", "server_error", "as it was told"),
        ("429", "rate_limited", "as it was told"),
        ("413", "context_too_long", "9 prompt tokens and an answer of 8 do not fit into the 64 tokens"),
        ("400", "bad_request", "as it was told"),
        ("cut", "connection_lost", "cut off"),
        ("miscounts", "prompt_changed", "9 prompt tokens were sent and the server counted 10"),
    ],
)
def test_a_fault_is_its_own_rows_and_the_next_prompt_is_answered(fault: str, kind: str, words: str) -> None:
    peer = TokenPeer(_answers((FIRST, _ids(" seven eight")), (SECOND, _ids(" seven eight"))), faults={1: fault})
    with serve(peer):
        ((one, two),) = _ask(peer, [FIRST, SECOND])
    assert isinstance(one, Failure)
    assert one.kind == kind
    assert words in one.message
    assert isinstance(two, Answer)


def test_a_refused_key_ends_the_run() -> None:
    peer = TokenPeer(_answers((FIRST, _ids(" seven")), (SECOND, _ids(" seven"))), faults={1: "401"})
    with serve(peer), pytest.raises(BackendUnavailable, match=r"refuses the key \(401\)"):
        _ask(peer, [FIRST, SECOND])
    assert len(peer.prompts) == 1, "nothing more is sent"


def test_a_server_that_is_gone_fails_the_rest_at_once() -> None:
    peer = TokenPeer(_answers((FIRST, _ids(" seven"))), faults={2: "dies"})
    with serve(peer):
        ((one, two, three),) = _ask(peer, [FIRST, SECOND, FIRST])
    assert isinstance(one, Answer)
    for reply in (two, three):
        assert isinstance(reply, Failure)
        assert reply.kind == "server_gone"
        assert f"the server at {peer.url} no longer answers" in reply.message
    assert len(peer.prompts) == 2
