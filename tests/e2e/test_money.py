"""Money from the plan to the report: limits stop a run cleanly, the answer cache saves it, rescoring costs nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import niah as package
from niah.scoring import exact
from niah.store.folder import RunFolder
from niah.store.read import RunRecord, read_rows
from tests.helpers.command import Command
from tests.helpers.known import known

pytest.importorskip("genai_prices")

BACKEND = ("--backend", "fake", "-m", "gpt-4o", "--set", "backend.provider=openai")
GRID = ("--kv", "bf16", "-l", "1k,2k", "-d", "3", "-n", "3")
RUN = (*BACKEND, "--set", "backend.prefix_cache=true", *GRID)
# per million tokens; the public list of today must not decide a test
PRICE = ("--set", "price.input_usd=2", "--set", "price.output_usd=10", "--set", "price.cached_usd=0.2")


def _row_usd(row: Any) -> float:
    plain = row.engine_prompt_tokens - row.cached_tokens
    return (plain * 2 + row.cached_tokens * 0.2 + row.output_tokens * 10) / 1e6


def test_every_row_has_its_cost(niah: Command, tmp_path: Path) -> None:
    said = niah("run", *RUN, *PRICE, "--out", tmp_path, "--json")
    assert said.code == 0
    record = package.load(tmp_path)
    assert len(record.rows) == 18
    for row in record.rows:
        assert row.cost_usd == pytest.approx(_row_usd(row))
    total = sum(known(row.cost_usd) for row in record.rows)
    assert said.document()["cost_usd"] == pytest.approx(total)
    assert said.document()["settings"][0]["cost_usd"] == pytest.approx(total)
    assert record.manifest["prices"]["source"] == "your config"
    assert record.manifest["prices"]["input_usd"] == 2
    assert len(record.manifest["prices"]["date"]) == 10
    spent = record.manifest["spent"]
    assert spent["cost_usd"] == pytest.approx(total + spent["beside_usd"])
    assert spent["beside_usd"] == pytest.approx(4 * (CANARY_TOKENS * 2 + 2 * 10) / 1e6, rel=0.5)
    shown = niah("show", tmp_path, "--json").document()
    assert [c["length"] for c in shown["costs"]] == [1024, 2048]
    assert sum(c["cost_usd"] for c in shown["costs"]) == pytest.approx(total)
    assert "bf16 at 2k: $" in niah("show", tmp_path).out
    page = (record.path / "report.html").read_text()
    assert "The cells of this run cost $" in page
    assert "Time and cost against length" in page
    assert "US dollars" in page
    assert record.frame().cost_usd.sum() == pytest.approx(total)


CANARY_TOKENS = 256


def test_the_public_list_is_named_with_its_date(niah: Command, tmp_path: Path) -> None:
    assert niah("run", *RUN, "--out", tmp_path).code == 0
    record = package.load(tmp_path)
    prices = record.manifest["prices"]
    assert prices["source"].startswith("genai-prices ")
    assert (prices["provider"], prices["model"]) == ("openai", "gpt-4o")
    by_list = lambda row: (  # noqa: E731
        (row.engine_prompt_tokens - row.cached_tokens) * prices["input_usd"]
        + row.cached_tokens * prices["cached_usd"]
        + row.output_tokens * prices["output_usd"]
    )
    assert all(row.cost_usd == pytest.approx(by_list(row) / 1e6) for row in record.rows)


def test_an_unknown_cost_is_null_and_never_zero(niah: Command, tmp_path: Path) -> None:
    assert niah("run", "--backend", "fake", *GRID, "--out", tmp_path).code == 0
    record = package.load(tmp_path)
    assert {row.cost_usd for row in record.rows} == {None}
    assert record.manifest["prices"] is None
    assert record.manifest["spent"]["cost_usd"] is None
    assert record.manifest["spent"]["tokens"] > 0
    assert niah("show", tmp_path, "--json").document()["settings"][0]["cost_usd"] is None
    assert "$" not in niah("show", tmp_path).out
    lines = [json.loads(line) for line in (record.path / "rows.jsonl").read_text().splitlines()]
    assert all(line["cost_usd"] is None for line in lines)


def test_max_cost_stops_before_it_is_passed_and_goes_on(niah: Command, tmp_path: Path) -> None:
    whole = niah("plan", *RUN, *PRICE, "--json").document()["cost_usd"]
    limit = round(whole / 2, 4)
    said = niah("run", *RUN, *PRICE, "--max-cost", limit, "--out", tmp_path, "--json")
    assert said.code == 5
    first = package.load(tmp_path)
    assert 0 < len(first.rows) < 18
    assert said.document()["status"] == "budget"
    assert "the limit of $" in said.document()["stopped_by"]
    assert first.manifest["spent"]["cost_usd"] <= limit
    assert (first.path / "report.html").is_file()
    # the limit is the run's, not the command's: nothing more is asked
    again = niah("run", *RUN, *PRICE, "--max-cost", limit, "--out", tmp_path)
    assert again.code == 5
    assert len(package.load(tmp_path).rows) == len(first.rows)
    assert "the same command with a higher limit goes on" in again.err
    done = niah("run", *RUN, *PRICE, "--max-cost", 2 * whole, "--out", tmp_path)
    assert done.code == 0
    rows = read_rows(RunFolder(first.path)).rows
    assert set(Counter(row.cell_id for row in rows).values()) == {1}, "nothing was paid for twice"
    assert len(rows) == 18


def test_max_tokens_needs_no_price(niah: Command, tmp_path: Path) -> None:
    said = niah("run", "--backend", "fake", *GRID, "--max-tokens", 9000, "--out", tmp_path)
    assert said.code == 5
    record = package.load(tmp_path)
    assert 0 < record.manifest["spent"]["tokens"] <= 9000
    assert len(record.rows) == 6
    assert "the limit of 9,000 tokens" in said.err
    assert niah("run", "--backend", "fake", *GRID, "--max-tokens", 100, "--out", tmp_path / "none").code == 5


def test_money_is_counted_once_over_a_kill(niah: Command, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "niah", "run", *RUN, *PRICE, "--out", str(tmp_path)]
    process = subprocess.Popen([*command, "--set", "backend.delay_s=0.5"], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not any(f.stat().st_size for f in tmp_path.glob("*/rows.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert niah("run", *RUN, *PRICE, "--out", tmp_path).code == 0
    record = package.load(tmp_path)
    rows = read_rows(RunFolder(record.path)).rows
    assert len(rows) == 18
    spent = record.manifest["spent"]
    # canaries have no row, and were asked before the kill
    assert spent["beside_tokens"] > 4 * 200
    assert spent["cost_usd"] - spent["beside_usd"] == pytest.approx(sum(_row_usd(row) for row in rows))


def test_the_cache_answers_a_second_run(niah: Command, tmp_path: Path) -> None:
    cache = ("--cache", tmp_path / "answers")
    assert niah("run", *RUN, *PRICE, *cache, "--out", tmp_path / "a").code == 0
    # an engine that gives up at once shows that it is not asked
    dead = ("--set", "backend.crash_after=1", "--set", "backend.fail_every=1")
    again = niah("run", *RUN, *PRICE, *cache, *dead, "--out", tmp_path / "b")
    assert again.code == 0
    assert "18 answers from the cache" in again.err
    assert "0 prompts to ask" in again.err
    first, second = package.load(tmp_path / "a"), package.load(tmp_path / "b")
    assert [row.answer for row in first.rows] == [row.answer for row in second.rows]
    assert all(row.answer_cached and row.cost_usd == 0 for row in second.rows)
    assert not any(row.answer_cached for row in first.rows)
    assert second.manifest["spent"]["cost_usd"] == 0
    assert second.manifest["settings"]["bf16"]["canary"]["state"] == "passed"
    # what decides an answer is part of its key
    other = niah("run", *BACKEND, *GRID, *PRICE, *cache, "--out", tmp_path / "c")
    assert "0 answers from the cache" in other.err
    more = niah("run", *RUN, *PRICE, *cache, "-d", "5", "--out", tmp_path / "d")
    assert more.code == 0


def test_cache_without_a_folder_has_one_of_its_own(
    niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIAH_CACHE", str(tmp_path / "home"))
    for out in ("a", "b"):
        said = niah("run", "--backend", "fake", *GRID, "--cache", "--out", tmp_path / out)
        assert said.code == 0
    assert "18 answers from the cache" in said.err
    assert (tmp_path / "home" / "answers" / "answers.sqlite").is_file()


EXACT = f"exact/{exact.PLUGIN.version}"
SCORER = """
from niah.prompts.scorer import ScorerPlugin
from niah.types import Score

KIND = "scoring"

def score(answer, case):
    return Score(0.0, False, "nothing pleases it", "{name}", {version})

PLUGIN = ScorerPlugin("{name}", "nothing is right", {version}, score)
"""


def test_rescore_with_another_scorer_and_back(niah: Command, tmp_path: Path) -> None:
    niah("run", *RUN, *PRICE, "--out", tmp_path / "r")
    before = package.load(tmp_path / "r")
    plugin = tmp_path / "stern.py"
    plugin.write_text(SCORER.format(name="stern", version=3))
    with (before.path / "rows.jsonl").open("ab") as file:
        file.write(b"not a row\n")
    said = niah("rescore", before.path, "--scorer", "stern", "--plugin", plugin, "--json")
    assert said.code == 0
    assert (said.document()["judged"], said.document()["turned"]) == (18, 18)
    stern = package.load(tmp_path / "r")
    assert {row.scorer for row in stern.rows} == {"stern/3"}
    assert not any(row.correct for row in stern.rows)
    assert [row.cell_id for row in stern.rows] == [row.cell_id for row in before.rows]
    assert [row.cost_usd for row in stern.rows] == [row.cost_usd for row in before.rows]
    assert RunRecord.load(before.path).bad_lines == (19,), "what is no row stays"
    assert (stern.manifest["rescored"][0]["scorer"], stern.manifest["rescored"][0]["before"]) == (
        "stern/3",
        {EXACT: 18},
    )
    faulty = tmp_path / "faulty.py"
    faulty.write_text(SCORER.format(name="faulty", version=1).replace("return Score", "return score.nothing, Score"))
    rows = (before.path / "rows.jsonl").read_bytes()
    fault = niah("rescore", before.path, "--scorer", "faulty", "--plugin", faulty)
    assert fault.code == 3
    assert "the scorer 'faulty'" in fault.err
    assert "Traceback" not in fault.err
    assert (before.path / "rows.jsonl").read_bytes() == rows, "all rows or none"
    back = niah("rescore", before.path)
    assert back.code == 0
    assert f"18 answers judged by {EXACT} (18 by stern/3 before), 18 judgements changed" in back.out
    assert package.load(tmp_path / "r").rows == before.rows
    # nothing is owed: the same command asks nothing
    assert "18 done, 0 failed and asked again, 0 new" in niah("run", *RUN, *PRICE, "--out", tmp_path / "r").err


def test_a_new_version_of_the_scorer_joins_new_runs(
    niah: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    niah("run", *RUN, "--out", tmp_path / "old")
    monkeypatch.setattr(exact, "PLUGIN", replace(exact.PLUGIN, version=exact.PLUGIN.version + 1))
    niah("run", *RUN, "--out", tmp_path / "new")
    old, new = package.load(tmp_path / "old"), package.load(tmp_path / "new")
    assert not {row.pair_id for row in old.rows} & {row.pair_id for row in new.rows}
    niah("rescore", old.path)
    old = package.load(tmp_path / "old")
    assert {row.pair_id for row in old.rows} == {row.pair_id for row in new.rows}
    assert {row.cell_id for row in old.rows} == {row.cell_id for row in new.rows}
    assert set(old.manifest["questions"]) == {row.pair_id for row in old.rows}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--max-cost", "0"), "max_cost cannot be 0"),
        (("--max-cost", "-1"), "max_cost cannot be -1"),
        (("--max-cost", "nan"), "max_cost cannot be nan"),
        (("--max-tokens", "0"), "max_tokens cannot be 0"),
        (("--set", "price.input_usd=1"), "price.output_usd is missing"),
        (("--set", "price={input_usd: -1, output_usd: 1}"), "price.input_usd cannot be -1"),
        (("--set", "price.inptu_usd=1"), "Did you mean 'input_usd'?"),
        (("-m", "nobodys-model", "--max-cost", "1"), "the price list knows no model 'nobodys-model' of 'openai'"),
        (("--set", "backend.provider=null", "--max-cost", "1"), "not billed by the token"),
        (("--set", "backend.provider=nobody", "--max-cost", "1"), "knows no model 'gpt-4o' of 'nobody'"),
    ],
)
def test_wrong_commands(niah: Command, tmp_path: Path, more: tuple[str, ...], sentence: str) -> None:
    said = niah("run", *RUN, *more, "--out", tmp_path / "out")
    assert said.code == 2
    assert sentence in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "out").exists()


def test_a_cache_that_cannot_be_used(niah: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = niah("run", *RUN, "--cache", tmp_path / "file", "--out", tmp_path / "out")
    assert said.code == 6
    assert "cannot make the answer cache" in said.err
    assert not (tmp_path / "out").exists()
    assert niah("rescore", tmp_path / "nowhere").code == 6
    wrong = niah("run", *RUN, "--out", tmp_path / "r").code, niah("rescore", tmp_path / "r", "--scorer", "exct")
    assert wrong[1].code == 2
    assert "Did you mean 'exact'?" in wrong[1].err
