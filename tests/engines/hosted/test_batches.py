"""``--batch``: handed in once, waited for, found again after a kill, half the price, and every fault on its own row."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from niah.runner import batches
from tests.engines.hosted import child
from tests.engines.hosted.batch_desk import Job
from tests.engines.hosted.peer import Ask, Peer, StartPeer
from tests.helpers.command import Command

BACKENDS = ("openai", "anthropic")
PRICE = ("--set", "price.input_usd=2", "--set", "price.output_usd=8")
CANARIES = 4
# two depths, three texts
CELLS = 6


@pytest.fixture
def batch(ask: Ask) -> Any:
    def run(peer: Peer, *args: object, sets: dict[str, object] | None = None, **more: Any) -> Any:
        return ask(
            peer,
            "-n",
            "3",
            "--batch",
            *args,
            sets={"batch_poll_s": 0.02, "batch_settle_s": 0.2, **(sets or {})},
            **more,
        )

    return run


@pytest.mark.parametrize(
    ("backend", "sets"),
    [
        ("openai", {"api": "chat"}),
        ("openai", {"api": "completions", "logprobs": True}),
        ("openai", {"api": "responses", "reasoning_effort": "low"}),
        ("anthropic", {}),
        ("anthropic", {"reasoning_tokens": 1024}),
    ],
)
def test_one_batch_answers_all(start_peer: StartPeer, batch: Ask, backend: str, sets: dict[str, object]) -> None:
    peer = start_peer()
    peer.desk.looks = 3
    run = batch(peer, *PRICE, backend=backend, sets=sets)
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS
    assert all(row.correct for row in run.rows)
    assert all(row.prompt_tokens + row.answer_budget == 512 for row in run.rows)
    assert (len(peer.desk.jobs), peer.desk.answered, len(peer.asked)) == (1, CELLS, CELLS + CANARIES)
    assert peer.desk.jobs[0].looks >= 3
    for row in run.rows:
        # cached and written tokens have no price of their own here
        full = (row.engine_prompt_tokens * 2 + row.output_tokens * 8) / 1e6
        assert row.cost_usd == pytest.approx(full / 2)
    effective = run.setting("auto")["effective"]
    assert (effective["batches"], effective["requests"]) == ("batch_1", CANARIES)


def test_requests_are_those_that_are_sent_one_by_one(start_peer: StartPeer, ask: Ask, batch: Ask) -> None:
    for backend in BACKENDS:
        peer = start_peer()
        batch(peer, backend=backend)
        handed_in = [body for _, body in peer.desk.jobs[0].requests]
        peer.bodies.clear()
        run = ask(peer, "-n", "3", "--fresh", "--reuse", "off", backend=backend, sets={"concurrency": 1})
        assert len(run.rows) == CELLS
        assert peer.bodies[-CELLS:] == handed_in


def test_batch_and_single_requests_share_a_run(start_peer: StartPeer, ask: Ask, batch: Ask) -> None:
    peer = start_peer()
    batch(peer)
    ask(peer, "-n", "3")
    assert len(peer.asked) == CELLS + CANARIES, "the answers of the batch are there already"


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return {
        "model": "peer",
        "haystack": "noise",
        "out": str(tmp_path / "out"),
        "grid": {"lengths": "512", "depths": "2", "trials": 3},
        "batch": True,
    }


def _child(settings: dict[str, Any], heard: Path) -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([child.__name__])
    process = context.Process(target=child.run, args=(settings, str(heard)))
    process.start()
    return process


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stopped_run_is_gone_on_with(
    start_peer: StartPeer, settings: dict[str, Any], tmp_path: Path, backend: str, how: signal.Signals
) -> None:
    peer = start_peer()
    peer.desk.looks = 10_000
    base = peer.url if backend == "openai" else peer.root
    settings["backend"] = {"name": backend, "base_url": base, "tokenizer": "words", "batch_poll_s": 0.02}
    process = _child(settings, tmp_path / "heard.txt")
    _until(lambda: peer.desk.jobs and peer.desk.jobs[0].looks > 2)
    os.kill(process.pid, how)
    process.join(30)
    assert process.exitcode == (-9 if how == signal.SIGKILL else 130)
    peer.desk.looks = 0
    again = _child(settings, tmp_path / "heard.txt")
    again.join(60)
    assert again.exitcode == 0
    assert (len(peer.desk.jobs), peer.desk.answered) == (1, CELLS), "handed in once"
    rows = [json.loads(line) for file in tmp_path.glob("out/*/rows.jsonl") for line in file.read_text().splitlines()]
    assert Counter(row["outcome"] for row in rows) == {"answered": CELLS}
    assert len({row["cell_id"] for row in rows}) == CELLS


def _until(what: Any) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "the run does not come so far"
        time.sleep(0.01)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fault", ["lost", "never", 503])
def test_a_submission_without_a_reply_is_made_once(
    start_peer: StartPeer, batch: Ask, backend: str, fault: object
) -> None:
    peer = start_peer()
    peer.desk.submit_faults = {1: fault}
    run = batch(peer, backend=backend)
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS
    assert (len(peer.desk.jobs), peer.desk.answered) == (1, CELLS)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fault", ["lost", "never"])
@pytest.mark.parametrize("status", [401, 404, 500])
def test_the_next_run_looks_for_a_batch_that_may_have_arrived(
    start_peer: StartPeer, batch: Ask, backend: str, fault: str, status: int
) -> None:
    peer = start_peer()
    peer.desk.submit_faults, peer.desk.list_status = {1: fault}, status
    batch(peer, backend=backend, sets={"attempts": 1}, code=4)
    peer.desk.list_status = None
    run = batch(peer, backend=backend)
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS
    assert (len(peer.desk.jobs), peer.desk.answered) == (1, CELLS)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_batch_that_shows_late_is_waited_for(start_peer: StartPeer, batch: Ask, backend: str) -> None:
    peer = start_peer()
    peer.desk.submit_faults, peer.desk.hidden_s = {1: "lost"}, 0.3
    run = batch(peer, backend=backend, sets={"batch_settle_s": 20})
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS
    assert len(peer.desk.jobs) == 1


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_refused_submission_is_not_looked_for(
    start_peer: StartPeer, batch: Ask, niah: Command, backend: str, status: int
) -> None:
    peer = start_peer()
    peer.desk.submit_faults, peer.desk.list_status = {1: status}, 500
    batch(peer, backend=backend, code=4)
    run = batch(peer, backend=backend)
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS


def test_a_known_batch_is_not_found_again(start_peer: StartPeer, batch: Ask) -> None:
    peer = start_peer()
    peer.desk.submit_faults = {2: 503}
    run = batch(peer, backend="anthropic", sets={"batch_requests": 3})
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS
    assert [len(job.requests) for job in peer.desk.jobs] == [3, 3]


@pytest.mark.parametrize("ours_first", [True, False])
def test_a_batch_of_somebody_else_is_not_taken_for_ours(start_peer: StartPeer, batch: Ask, ours_first: bool) -> None:
    peer = start_peer()
    peer.desk.submit_faults, peer.desk.list_status = {1: "lost"}, 500
    batch(peer, backend="anthropic", sets={"attempts": 1}, code=4)
    peer.desk.list_status = None
    ours = peer.desk.jobs[0]
    others = [(f"other-{number}", body) for number, (_, body) in enumerate(ours.requests)]
    created = ours.created - (60 if ours_first else 0)
    ours.created -= 0 if ours_first else 60
    peer.desk.jobs.append(Job("batch_other", "messages", others, {}, created))
    run = batch(peer, backend="anthropic")
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS
    assert len(peer.desk.jobs) == 2, "ours and the other one"


@pytest.mark.parametrize("backend", BACKENDS)
def test_ours_may_stand_on_a_later_page(start_peer: StartPeer, batch: Ask, backend: str) -> None:
    peer = start_peer()
    peer.desk.submit_faults, peer.desk.list_status, peer.desk.page_size = {1: "lost"}, 500, 2
    batch(peer, backend=backend, sets={"attempts": 1}, code=4)
    peer.desk.list_status, shape = None, peer.desk.jobs[0].shape
    peer.desk.jobs += [Job(f"batch_other_{n}", shape, [("other-0", {})], {}, time.time()) for n in range(5)]
    run = batch(peer, backend=backend)
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS
    assert len(peer.desk.jobs) == 6


def test_ours_may_show_after_another_was_taken_for_it(start_peer: StartPeer, batch: Ask) -> None:
    peer = start_peer()
    peer.desk.submit_faults, peer.desk.hidden_s = {1: "lost"}, 0.5
    others = [(f"other-{number}", {"messages": [{"content": "."}]}) for number in range(CELLS)]
    peer.desk.jobs.append(Job("batch_other", "messages", others, {}, time.time() - 60))
    run = batch(peer, backend="anthropic", sets={"batch_settle_s": 20})
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS
    assert len(peer.desk.jobs) == 2


def test_results_with_other_ids_are_no_replies(start_peer: StartPeer, batch: Ask) -> None:
    peer = start_peer()
    peer.desk.foreign = True
    run = batch(peer, code=3)
    assert [row.error_kind for row in run.rows] == ["no_reply"] * CELLS
    peer.desk.foreign = False
    run = batch(peer)
    assert {row.outcome for row in run.rows if row.attempt == 2} == {"answered"}


def test_a_pending_batch_is_not_passed_over(start_peer: StartPeer, ask: Ask, batch: Ask, tmp_path: Path) -> None:
    peer = start_peer()
    answers = ("--cache", tmp_path / "answers")
    ask(peer, "-n", "3", *PRICE, *answers, "--out", tmp_path / "first")
    peer.desk.looks = 10_000
    batch(peer, *PRICE, "--max-minutes", "0.02", code=5)
    peer.desk.looks = 0
    refused = ask(peer, "-n", "3", *PRICE, code=2)
    assert refused.rows == (), "nothing is asked again"
    run = batch(peer, *PRICE, *answers)
    assert [row.answer_cached for row in run.rows] == [True] * CELLS
    spent, canaries = run.manifest["spent"]["cost_usd"], CANARIES * (256 * 2 + 3 * 8) / 1e6
    handed_in = sum(row.engine_prompt_tokens * 2 + row.output_tokens * 8 for row in run.rows) / 1e6 / 2
    assert spent == pytest.approx(handed_in + run.manifest["spent"]["beside_usd"] - handed_in)
    assert spent > handed_in + canaries * 0.9, "the batch was paid for, though its answers were there"
    assert len(peer.desk.jobs) == 1


def test_trials_auto_collect_what_a_later_round_handed_in(start_peer: StartPeer, batch: Ask) -> None:
    peer = start_peer()
    peer.desk.line_faults, peer.desk.looks_of = {1: 500}, {2: 10_000}
    batch(peer, "-n", "auto:12", "--max-minutes", "0.05", code=5)
    assert [len(job.requests) for job in peer.desk.jobs] == [12, 13]
    peer.desk.looks_of = {}
    batch(peer, "-n", "auto:12")
    asked = Counter(str(body) for job in peer.desk.jobs for _, body in job.requests)
    assert sorted(asked.values())[-2:] == [1, 2], "only the one that failed was asked again"


def test_a_group_in_parts_stays_reserved(start_peer: StartPeer, batch: Ask) -> None:
    peer = start_peer()
    run = batch(peer, *PRICE, "-d", "12", "-n", "3", "--max-cost", "0.0145", sets={"batch_tokens": 3000}, code=5)
    assert run.manifest["spent"]["cost_usd"] <= 0.0145
    assert len(run.rows) == 12


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_kill_while_collecting_counts_nothing_twice(start_peer: StartPeer, batch: Ask, backend: str) -> None:
    peer = start_peer()
    peer.desk.line_faults = {1: "empty"}
    first = batch(peer, *PRICE, backend=backend, code=3)
    journal = first.path / "batches.jsonl"
    kept = [line for line in journal.read_text().splitlines() if '"over"' not in line]
    journal.write_text("\n".join(kept) + "\n")
    peer.desk.line_faults = {}
    again = batch(peer, *PRICE, backend=backend, code=3)
    assert (again.rows, again.manifest["spent"]) == (first.rows, first.manifest["spent"])
    assert len(peer.desk.jobs) == 1
    last = batch(peer, *PRICE, backend=backend)
    assert Counter(row.attempt for row in last.rows) == {1: CELLS - 1, 2: 1}
    assert [len(job.requests) for job in peer.desk.jobs] == [CELLS, 1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_batch_that_is_gone_is_told_and_can_be_given_up(
    start_peer: StartPeer, niah: Command, batch: Ask, backend: str
) -> None:
    peer = start_peer()
    peer.desk.looks = 10_000
    run = batch(peer, "--max-minutes", "0.02", backend=backend, code=5)
    peer.desk.forgets = True
    batch(peer, backend=backend, code=4)
    peer.desk.forgets, peer.desk.looks = False, 0
    (run.path / "batches.jsonl").unlink()
    run = batch(peer, backend=backend)
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS


def test_nothing_is_handed_in_while_the_canary_fails(start_peer: StartPeer, batch: Ask) -> None:
    peer = start_peer(schedule=dict.fromkeys(range(1, 5), "500"))
    batch(peer, sets={"attempts": 1, "concurrency": 1}, code=3)
    assert not peer.desk.jobs
    run = batch(peer)
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS


def test_the_clock_hands_in_what_is_built(start_peer: StartPeer, batch: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = start_peer()
    peer.desk.looks = 10_000
    build = batches.BatchSubmitter._build

    async def slowly(self: Any, pending: Any) -> Any:
        await asyncio.sleep(0.5)
        return await build(self, pending)

    monkeypatch.setattr(batches.BatchSubmitter, "_build", slowly)
    batch(peer, "-n", "40", "--max-minutes", "0.03", code=5)
    assert len(peer.desk.jobs) == 1
    assert 2 <= len(peer.desk.jobs[0].requests) < 80


def test_a_damaged_journal_stops_the_run(start_peer: StartPeer, niah: Command, batch: Ask) -> None:
    peer = start_peer()
    peer.desk.looks = 10_000
    run = batch(peer, "--max-minutes", "0.02", code=5)
    journal = run.path / "batches.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole.replace(b'"sending"', b'"sen\xffding"', 1))
    batch(peer, code=6)
    peer.desk.looks = 0
    journal.write_bytes(whole + b'\n{"event":"over","lab')
    run = batch(peer)
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS
    assert len(peer.desk.jobs) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_faults_of_single_requests(start_peer: StartPeer, batch: Ask, backend: str) -> None:
    peer = start_peer()
    peer.desk.line_faults = {1: 500, 2: 400, 3: "expired", 4: "missing", 5: "broken", 6: "empty"}
    run = batch(peer, backend=backend, code=3)
    assert [row.outcome for row in run.rows] == ["failed"] * CELLS
    assert all(row.correct is None and row.score is None for row in run.rows)
    gone = "batch_expired" if backend == "openai" else "expired"
    empty = "empty_answer" if backend == "openai" else "answer_missing"
    kinds = Counter(row.error_kind for row in run.rows)
    assert kinds == {"server_error": 1, "bad_request": 1, gone: 1, "no_reply": 2, empty: 1}
    peer.desk.line_faults = {}
    run = batch(peer, backend=backend)
    newest = {row.cell_id: row for row in run.rows}
    assert [(row.outcome, row.attempt) for row in newest.values()] == [("answered", 2)] * CELLS
    assert len(peer.desk.jobs[1].requests) == CELLS


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fault_of_the_account_ends_the_run_when_the_others_have_rows(
    start_peer: StartPeer, batch: Ask, backend: str
) -> None:
    peer = start_peer()
    peer.desk.line_faults = {2: 401}
    batch(peer, backend=backend, code=4)
    peer.desk.line_faults = {}
    run = batch(peer, backend=backend)
    assert Counter(row.outcome for row in run.rows) == {"answered": CELLS}
    assert [len(job.requests) for job in peer.desk.jobs] == [CELLS, 1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_refused_batch(start_peer: StartPeer, batch: Ask, niah: Command, backend: str) -> None:
    peer = start_peer()
    peer.desk.refused = "enqueued token limit reached"
    batch(peer, backend=backend, code=4)
    peer.desk.refused = ""
    run = batch(peer, backend=backend)
    assert [row.outcome for row in run.rows] == ["answered"] * CELLS
    assert len(peer.desk.jobs) == 2


def test_what_a_refused_batch_says(start_peer: StartPeer, niah: Command, tmp_path: Path) -> None:
    peer = start_peer()
    args = ("run", "--backend", "openai", "-m", "peer", "-l", "512", "-d", "2", "-n", "1", "--batch")
    sets = (f"backend.base_url={peer.url}", "backend.tokenizer=words", "backend.batch_poll_s=0.02")
    pairs = [part for pair in sets for part in ("--set", pair)]
    peer.desk.refused = "enqueued token limit reached"
    said = niah(*args, *pairs, "--haystack", "noise", "--out", tmp_path / "a")
    assert said.code == 4
    assert "batch batch_1 was rejected: enqueued token limit reached" in said.err
    peer.desk.is_there = False
    said = niah(*args, *pairs, "--haystack", "noise", "--out", tmp_path / "b")
    assert said.code == 4
    assert "the batch cannot be handed in: " in said.err
    assert "no such path" in said.err


def test_a_batch_has_a_size(start_peer: StartPeer, batch: Ask) -> None:
    peer = start_peer()
    run = batch(peer, sets={"batch_requests": 4})
    assert Counter(row.outcome for row in run.rows) == {"answered": CELLS}
    assert [len(job.requests) for job in peer.desk.jobs] == [4, 2]


def test_no_more_tokens_wait_than_are_allowed(start_peer: StartPeer, batch: Ask) -> None:
    peer = start_peer()
    peer.desk.looks = 3
    run = batch(peer, sets={"batch_tokens": 1100})
    assert Counter(row.outcome for row in run.rows) == {"answered": CELLS}
    assert [len(job.requests) for job in peer.desk.jobs] == [2, 2, 2]
    for earlier, later in zip(peer.desk.jobs, peer.desk.jobs[1:], strict=False):
        assert later.created > earlier.created
        assert earlier.looks >= 3, "the next is handed in when this one is through"


def test_a_limit_on_money_hands_in_what_fits(start_peer: StartPeer, batch: Ask) -> None:
    peer = start_peer()
    # the canaries took $0.004; a text's two questions at half the price: $0.0012
    run = batch(peer, *PRICE, "--max-cost", "0.0068", code=5)
    assert Counter(row.outcome for row in run.rows) == {"answered": 4}
    assert [len(job.requests) for job in peer.desk.jobs] == [4]
    assert run.manifest["spent"]["cost_usd"] < 0.0068
    run = batch(peer, *PRICE, "--max-cost", "1")
    assert Counter(row.outcome for row in run.rows) == {"answered": CELLS}
    assert [len(job.requests) for job in peer.desk.jobs] == [4, 2]


def test_the_clock_ends_a_wait(start_peer: StartPeer, batch: Ask) -> None:
    peer = start_peer()
    peer.desk.looks = 10_000
    run = batch(peer, "--max-minutes", "0.02", code=5)
    assert run.rows == ()
    peer.desk.looks = 0
    run = batch(peer)
    assert Counter(row.outcome for row in run.rows) == {"answered": CELLS}
    assert len(peer.desk.jobs) == 1


def test_what_cannot_be_a_batch_is_refused(niah: Command, start_peer: StartPeer) -> None:
    said = niah("plan", "--backend", "oracle", "-l", "512", "--batch")
    assert said.code == 2
    assert "the backend 'oracle' has no batches. Leave out --batch, or use --backend anthropic or openai." in said.out
    peer = start_peer()
    pairs = ("--set", f"backend.base_url={peer.url}", "--set", "backend.tokenizer=words")
    said = niah("plan", "--backend", "openai", "-m", "peer", "-l", "512", "--batch", "--reuse", "verify", *pairs)
    assert said.code == 2
    assert "requests of a batch share nothing that could be verified" in said.out


def test_the_plan_counts_with_the_batch_price(niah: Command, start_peer: StartPeer) -> None:
    peer = start_peer()
    pairs = ("--set", f"backend.base_url={peer.url}", "--set", "backend.tokenizer=words", *PRICE)
    args = (
        "plan",
        "--backend",
        "openai",
        "-m",
        "peer",
        "-l",
        "512",
        "-d",
        "2",
        "-n",
        "3",
        "--haystack",
        "noise",
        *pairs,
    )
    single = json.loads(niah(*args, "--json").out.splitlines()[-1])["money"]
    batch = json.loads(niah(*args, "--batch", "--json").out.splitlines()[-1])["money"]
    assert batch["cost_usd"] == batch["batch_usd"] == single["batch_usd"]
    assert batch["cached_tokens"] == 0 < single["cached_tokens"]
    canaries = CANARIES * (256 * 2 + 24 * 8) / 1e6
    assert batch["cost_usd"] - canaries == pytest.approx((batch["uncached_usd"] - canaries) / 2)
