"""What each API is sent and how its replies are read: answers, reasoning, refusals, budgets, overflow, counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from niah.backends.anthropic.adapter import AnthropicAdapter, read_message
from niah.backends.gemini.adapter import read_content
from niah.backends.openai.adapter import OpenAIAdapter
from niah.backends.openai.replies import read_chat, read_response
from niah.backends.openai.server import Served
from niah.engines.hosted.adapter import Call
from niah.engines.http.faults import ApiFault
from niah.registry import load
from niah.store.schema import Row
from tests.engines.hosted.peer import Ask, Peer, StartPeer, read, text_of

APIS: list[tuple[str, dict[str, Any]]] = [
    ("openai", {"api": "chat"}),
    ("openai", {"api": "chat", "stream": True}),
    ("openai", {"api": "completions"}),
    ("openai", {"api": "completions", "stream": True}),
    ("openai", {"api": "responses"}),
    ("anthropic", {}),
    ("gemini", {}),
]
NAMES = [" ".join([name, *map(str, sets.values())]) for name, sets in APIS]


@pytest.mark.parametrize(("backend", "sets"), APIS, ids=NAMES)
def test_answers_with_exact_counts(start_peer: StartPeer, ask: Ask, backend: str, sets: dict[str, Any]) -> None:
    peer = start_peer()
    run = ask(peer, backend=backend, sets=sets)
    assert len(run.rows) == 2
    for row in run.rows:
        assert row.outcome == "answered"
        assert row.correct
        assert row.prompt_tokens + row.answer_budget == row.length == 512
        assert row.answer_budget >= 24
        assert row.engine_prompt_tokens == row.prompt_tokens
        assert row.count_difference == 0
        assert "estimate" not in row.counted_by
        assert row.kv_memory.source == "not_observable"
        assert row.kv_memory.logical_bytes is None
        assert row.requests == 1
    assert max(row.prompt_tokens for row in run.rows) >= 0.99 * (512 - 24)
    assert run.setting("auto")["effective"]["kv.observable"] is False
    needles = [text_of(body) for body in peer.bodies]
    assert all(read(text) != "not found" for text in needles), "the needle is in what was sent"


@pytest.mark.parametrize("backend", ["anthropic", "gemini"])
def test_reasoning_and_billed_parts_are_kept_apart(start_peer: StartPeer, ask: Ask, backend: str) -> None:
    row = ask(start_peer(), backend=backend).rows[0]
    assert row.reasoning == "I looked."
    assert "looked" not in row.answer
    if backend == "anthropic":
        assert (row.cached_tokens, row.cache_write_tokens) == (4, 3)
    else:
        assert row.reasoning_tokens == 2
        assert row.answer_logprob < 0


def test_the_shared_haystack_is_marked_for_the_cache(start_peer: StartPeer, ask: Ask) -> None:
    peer = start_peer()
    ask(peer, backend="anthropic")
    first, second = (body["messages"][0]["content"] for body in peer.bodies[-2:])
    assert first[0] == second[0]
    assert first[0]["cache_control"] == {"type": "ephemeral"}
    assert first[1] != second[1]
    ask(peer, "--reuse", "off", "--fresh", backend="anthropic")
    assert "cache_control" not in peer.bodies[-1]["messages"][0]["content"][0]


def test_the_answer_is_begun_where_the_server_goes_on_from_it(start_peer: StartPeer, ask: Ask) -> None:
    peer = start_peer(owner="vllm")
    rows = ask(peer).rows
    last = peer.bodies[-1]
    assert last["messages"][-1]["role"] == "assistant"
    assert last["continue_final_message"] is True
    assert all(row.answer_prefix for row in rows)
    plain = start_peer()
    assert not any(row.answer_prefix for row in ask(plain, "--fresh").rows), "what is not sent is not claimed"
    assert plain.bodies[-1]["messages"][-1]["role"] == "user"


def _changed(start_peer: StartPeer, ask: Ask, change: Callable[[dict[str, Any]], None]) -> Row:
    return ask(start_peer(reply_extra=change), code=3).rows[0]


def test_a_reply_cut_by_its_budget_is_truncated(start_peer: StartPeer, ask: Ask) -> None:
    def cut(reply: dict[str, Any]) -> None:
        message = {"content": "", "reasoning_content": "Let me see. The text says"}
        reply["choices"][0] |= {"message": message, "finish_reason": "length"}

    row = _changed(start_peer, ask, cut)
    assert (row.outcome, row.correct, row.answer) == ("truncated", None, "")
    assert row.reasoning.startswith("Let me see")


@pytest.mark.parametrize("how", ["filter", "refusal"])
def test_a_filter_or_refusal_is_no_miss(start_peer: StartPeer, ask: Ask, how: str) -> None:
    def refuse(reply: dict[str, Any]) -> None:
        if how == "filter":
            reply["choices"][0] |= {"message": {"content": None}, "finish_reason": "content_filter"}
        else:
            reply["choices"][0]["message"] = {"content": None, "refusal": "I cannot help with that."}

    row = _changed(start_peer, ask, refuse)
    assert (row.outcome, row.correct) == ("refused", None)


def test_reasoning_budget_comes_on_top(start_peer: StartPeer, ask: Ask) -> None:
    peer = start_peer(context=4096)
    rows = ask(peer, sets={"reasoning_tokens": 2000}).rows
    assert peer.bodies[-1]["max_tokens"] == rows[-1].answer_budget + 2000
    said = ask(start_peer(context=2400), "--fresh", "-l", "512", sets={"reasoning_tokens": 2000}, code=2)
    assert said is not None


def test_context_overflow_says_both_numbers(start_peer: StartPeer, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.responses import JSONResponse

    from tests.engines.hosted import peer as peers

    async def overflow(peer: Peer, request: Any, body: dict[str, Any], shape: str) -> JSONResponse:
        message = "This model's maximum context length is 500 tokens. However, you requested 512."
        return JSONResponse({"error": {"message": message, "code": 400}}, 400)

    monkeypatch.setitem(peers.FAULTS, "overflow", overflow)
    peer = start_peer(context=None, schedule=dict.fromkeys(range(5, 99), "overflow"))
    row = ask(peer, sets={"context_tokens": 600}, code=3).rows[0]
    assert row.error_kind == "context_too_long"
    assert f"{row.prompt_tokens:,} prompt tokens" in row.error
    assert "600 tokens that the model takes" in row.error
    assert len(peer.asked) == 6, "a prompt that is too long is not asked again"


def test_an_estimate_is_called_one(start_peer: StartPeer, ask: Ask) -> None:
    rows = ask(start_peer(counts=False), sets={"tokenizer": "o200k_base"}).rows
    for row in rows:
        assert row.counted_by == "estimate: o200k_base + 7"
        assert row.prompt_tokens + row.answer_budget == 512
        assert row.count_difference == row.engine_prompt_tokens - row.prompt_tokens != 0


def test_messages_without_a_counter_are_estimated(start_peer: StartPeer, ask: Ask) -> None:
    peer = start_peer(counts=False)
    for row in ask(peer, backend="anthropic").rows:
        assert row.counted_by == "estimate: words + 7"
        assert row.prompt_tokens + row.answer_budget == 512
        assert row.count_difference == row.engine_prompt_tokens - row.prompt_tokens


def test_another_tokenizer_is_fitted_to_the_servers_count(start_peer: StartPeer, ask: Ask) -> None:
    rows = ask(start_peer(), sets={"tokenizer": "o200k_base"}).rows
    for row in rows:
        assert row.count_difference == 0
        assert row.engine_prompt_tokens + row.answer_budget == 512
    assert max(row.engine_prompt_tokens for row in rows) >= 0.99 * (512 - 24)


@pytest.mark.parametrize(
    ("read_reply", "reply", "kind"),
    [
        (read_chat, {}, "answer_missing"),
        (read_chat, {"choices": []}, "answer_missing"),
        (read_chat, {"choices": [{"message": {"content": "x"}, "finish_reason": "tired"}]}, "bad_reply"),
        (read_chat, {"error": {"message": "worker died"}}, "server_error"),
        (read_chat, {"choices": [{"message": {"content": ""}, "delta": {"content": "7"}}]}, "answer_missing"),
        (read_response, {"output": "7"}, "answer_missing"),
        (read_response, {"output": [], "status": "failed", "error": {"message": "no"}}, "server_error"),
        (read_message, {"completion": "7"}, "answer_missing"),
        (read_message, {"content": [], "stop_reason": None}, "bad_reply"),
        (read_message, {"content": [], "stop_reason": "model_context_window_exceeded"}, "context_too_long"),
    ],
)
def test_odd_replies_are_faults(read_reply: Callable[..., Any], reply: dict[str, Any], kind: str) -> None:
    with pytest.raises(ApiFault) as caught:
        read_reply(reply, "")
    assert caught.value.kind == kind


def test_gemini_blocks_and_stops() -> None:
    assert read_content({"prompt_feedback": {"block_reason": "SAFETY"}}).stop == "refused"
    candidate = {"finish_reason": "MAX_TOKENS", "content": {"parts": [{"text": "hm", "thought": True}]}}
    said = read_content({"candidates": [candidate]})
    assert (said.stop, said.text, said.reasoning) == ("length", "", "hm")
    with pytest.raises(ApiFault):
        read_content({"candidates": []})


def test_a_usage_that_is_none_is_unknown_and_not_zero() -> None:
    choice = {"message": {"content": "7"}, "finish_reason": "stop"}
    for usage in (None, {}, {"prompt_tokens": -5, "completion_tokens": "many"}, {"prompt_tokens": True}):
        said = read_chat({"choices": [choice], "usage": usage}, "")
        assert said.prompt_tokens is None
        assert said.output_tokens is None


def test_log_probabilities_of_the_answer() -> None:
    choice = {
        "message": {"content": "74"},
        "finish_reason": "stop",
        "logprobs": {"content": [{"logprob": -0.5}, {"logprob": -0.25}]},
    }
    assert read_chat({"choices": [choice]}, "").answer_logprob == pytest.approx(-0.75)
    choice["logprobs"] = {"content": [{"logprob": -0.5}, {"logprob": None}]}
    assert read_chat({"choices": [choice]}, "").answer_logprob is None


@pytest.mark.parametrize("backend", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("options", "sent"),
    [({}, False), ({"temperature": 0.5}, True), ({"base_url": "http://127.0.0.1:9/v1"}, True)],
)
def test_a_temperature_goes_to_the_provider_only_when_set(backend: str, options: dict[str, Any], sent: bool) -> None:
    made = load("backends", backend).options(**options)
    if backend == "openai":
        adapter: Any = OpenAIAdapter(made, Served("m", "", None, ""), "http://127.0.0.1:9/v1", None)
    else:
        adapter = AnthropicAdapter(made, "m", "http://127.0.0.1:9", None)
    body, extra = adapter.body(Call("a", "b", "", 5))
    asyncio.run(adapter.close())
    assert ("temperature" in {**body, **extra}) == sent
