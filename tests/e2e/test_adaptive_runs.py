"""``--trials auto`` and ``--difficulty auto``: what is spent, what is recorded, and what a resume does."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import niah as package
from niah.stats.compare import compare_pairs
from niah.stats.pairs import join_rows
from niah.stats.power import power_of_drop
from tests.helpers.command import Command
from tests.helpers.known import known

AUTO = ("run", "-b", "oracle", "--kv", "bf16,int8,int4", "-l", "512", "-d", "5", "--trials", "auto:24", "--json")
LOSS = ("--set", "backend.loss={bf16: 0.05, int8: 0.06, int4: 0.5}")


def _trials(out: Path) -> dict[str, int]:
    return {kv: count // 5 for kv, count in Counter(row.kv for row in package.load(out).rows).items()}


def test_trials_go_where_the_verdict_is_open(niah: Command, tmp_path: Path) -> None:
    said = niah(*AUTO, *LOSS, "--out", tmp_path)
    assert said.code == 0
    spent = _trials(tmp_path)
    assert spent["bf16"] == spent["int8"] == 24
    assert spent["int4"] in (6, 12), "a loss of half is plain early"
    document = said.document()
    assert document["cells"] == document["answered"] == sum(spent.values()) * 5
    assert document["skipped"] == 0
    record = package.load(tmp_path)
    adaptive = record.manifest["adaptive"]
    assert adaptive["trials"] == spent
    assert [step["trials"] for step in adaptive["rounds"]] == [6, 12, 24]
    assert adaptive["stopped"] == "24 trials a cell were reached; still open: int8"
    assert f"stopped because {adaptive['stopped']}" in said.err
    assert len(record.manifest["questions"]) == 24 * 5
    rows = (record.path / "rows.jsonl").read_bytes()
    again = niah(*AUTO, *LOSS, "--out", tmp_path)
    assert again.code == 0
    assert (record.path / "rows.jsonl").read_bytes() == rows, "the same command costs nothing"
    assert package.load(tmp_path).manifest["adaptive"] == adaptive
    last = next(row for row in record.rows if row.trial == 23)
    assert niah("cell", record.path, last.cell_id, "--json").document()["matches"]


def test_an_interrupted_run_is_granted_the_same(niah: Command, tmp_path: Path) -> None:
    command = (*AUTO, *LOSS, "--trials", "auto:12", "--out", tmp_path)
    niah(*command)
    whole = package.load(tmp_path)
    path = whole.path / "rows.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) * 2 // 3]))
    niah(*command)
    assert {row.cell_id for row in package.load(tmp_path).rows} == {row.cell_id for row in whole.rows}


def test_plan_says_from_and_to(niah: Command) -> None:
    said = niah("plan", "-b", "oracle", "-l", "512", "-d", "5", "--trials", "auto", "--difficulty", "auto")
    assert "6 to 64 trials" in said.out
    assert "chosen by a probe" in said.out


HARDER = '''
"""A reader that gets confused by many needles."""
from contextlib import asynccontextmanager
from dataclasses import replace
from niah.backends import oracle
from niah.engines.base import per_session
from niah.grid import seed_from

class Session(oracle._OracleSession):
    def _finds(self, prompt):
        keys = len(prompt.case.needles)
        return seed_from(prompt.sha256, prompt.case.expected[0]) % 100 >= LOST.get(keys, 100)

@asynccontextmanager
async def session(options, info, request):
    yield Session(options, request)

LOST = {2: 0, 4: 3, 8: 10, 16: 25, 32: 90}
PLUGIN = replace(oracle.PLUGIN, name="confused", open=per_session(session))
'''


@pytest.fixture
def confused(tmp_path: Path) -> Path:
    path = tmp_path / "confused.py"
    path.write_text(HARDER)
    return path


def test_difficulty_is_chosen_recorded_and_kept(niah: Command, confused: Path, tmp_path: Path) -> None:
    command: list[object] = [
        "run",
        "-b",
        "confused",
        "--plugin",
        confused,
        "--kv",
        "bf16,int8",
        "-l",
        "2k,3k",
        "-d",
        "11",
    ]
    command += ("--trials", "3", "--difficulty", "auto", "--out", tmp_path / "out")
    said = niah(*command)
    assert said.code == 0
    record = package.load(tmp_path / "out")
    chosen = record.manifest["difficulty"]
    assert chosen["chosen"] == {"keys": 16}
    assert 0.6 <= chosen["accuracy"] <= 0.9
    assert "difficulty auto: keys=16" in said.err
    assert record.manifest["asked"]["task_options"]["keys"] == 16
    right = [bool(row.correct) for row in record.rows if row.kv == "bf16"]
    assert 0.6 <= sum(right) / len(right) <= 0.9
    rows = (record.path / "rows.jsonl").read_bytes()
    again = niah(*command)
    assert "132 done, 0 failed and asked again, 0 new" in again.err
    assert (record.path / "rows.jsonl").read_bytes() == rows
    assert niah("cell", record.path, record.rows[0].cell_id, "--json").document()["matches"]


def test_an_easy_task_takes_the_hardest_rung_that_fits(niah: Command, tmp_path: Path) -> None:
    niah("run", "-b", "oracle", "-l", "512", "-d", "3", "--difficulty", "auto", "--out", tmp_path)
    chosen = package.load(tmp_path).manifest["difficulty"]
    assert chosen["accuracy"] == 1.0
    assert "the hardest rung that fits is still easy" in chosen["why"]


def test_the_probe_counts_as_spent(niah: Command, tmp_path: Path) -> None:
    backend = ("-b", "fake", "-m", "gpt-4o", "--set", "backend.provider=openai", "--kv", "bf16")
    price = ("--set", "price.input_usd=2", "--set", "price.output_usd=10")
    command = ("run", *backend, *price, "-l", "1k", "-d", "3", "-n", "2", "--difficulty", "auto", "--out", tmp_path)
    niah(*command)
    record = package.load(tmp_path)
    probe, spent = record.manifest["difficulty"], record.manifest["spent"]
    assert probe["tokens"] > 6 * 900
    assert probe["cost_usd"] > 6 * 900 * 2 / 1e6
    rows_usd = sum(known(row.cost_usd) for row in record.rows)
    assert spent["cost_usd"] == pytest.approx(rows_usd + spent["beside_usd"])
    assert spent["beside_usd"] > probe["cost_usd"], "the canaries are there too"
    niah(*command)
    assert package.load(tmp_path).manifest["spent"] == spent


def test_a_task_without_rungs_says_so(niah: Command, tmp_path: Path) -> None:
    said = niah("run", "-b", "oracle", "--task", "passkey", "--difficulty", "auto", "--out", tmp_path)
    assert said.code == 2
    assert "has no rungs of difficulty to choose from; use --task multikey" in said.err
    assert niah("run", "-b", "oracle", "--difficulty", "hard", "--out", tmp_path).code == 2


@pytest.mark.proof
def test_a_known_loss_of_ten_points_is_found_at_the_promised_power(tmp_path: Path) -> None:
    """One long run is cut at random into many small ones; each is an experiment of its own."""
    import numpy as np

    loss = {"bf16": 0.03, "int8": 0.127}
    run = package.run(
        backend={"name": "oracle", "options": {"loss": loss}}, kv=["bf16", "int8"],
        lengths="384", depths=5, trials=240, task={"name": "multikey", "options": {"keys": 5}}, out=str(tmp_path),
    )  # fmt: skip
    by_kv = {kv: [row for row in run.rows if row.kv == kv] for kv in ("bf16", "int8")}
    pairs = join_rows(by_kv["bf16"], by_kv["int8"])
    lost, gained = pairs.lost / len(pairs), pairs.gained / len(pairs)
    assert lost - gained == pytest.approx(0.1, abs=0.03)
    contexts = 26
    rng = np.random.default_rng(7)
    cuts = [rng.permutation(240)[:contexts] for _ in range(400)]
    found = sum(compare_pairs(pairs.where(np.isin(pairs.contexts, cut))).verdict == "worse" for cut in cuts) / 400
    promised = power_of_drop(contexts * 5, lost - gained, gained, contexts)
    assert found == pytest.approx(promised, abs=0.05)
    assert json.loads((run.path / "run.json").read_text())["status"] == "finished"
