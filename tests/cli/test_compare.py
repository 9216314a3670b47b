"""``niah compare`` as a user meets it: verdicts, gates, exit codes, and everything that cannot be compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import niah as package
from tests.helpers.command import Command

OWN: dict[str, Any] = {"backend": "oracle", "lengths": "512,1k", "depths": 5, "trials": 6}


def _loss(**shares: float) -> dict[str, object]:
    return {"name": "oracle", "options": {"loss": shares}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bf16 finds all, int8 too, int4 loses 40 %."""
    out = str(tmp_path_factory.mktemp("runs"))
    return package.run(**{**OWN, "backend": _loss(int4=0.4)}, kv=["bf16", "int8", "int4"], out=out).path


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same questions under another engine option, where int8 loses half."""
    out = str(tmp_path_factory.mktemp("others"))
    return package.run(**{**OWN, "backend": _loss(int8=0.5)}, kv=["bf16", "int8"], out=out).path


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """A run folder that may be spoilt."""
    target = tmp_path / run.name
    shutil.copytree(run, target)
    return target


def _edit(path: Path, **changes: object) -> None:
    manifest = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(manifest | changes))


def test_document(niah: Command, run: Path) -> None:
    said = niah("compare", run, "--json")
    assert said.code == 0
    document = said.document()
    assert document["exit"] == 0
    by_new = {item["new"]: item for item in document["comparisons"]}
    assert list(by_new) == ["int8", "int4"]
    names = {"base", "new", "pairs", "accuracy_base", "accuracy_new", "delta", "ci", "p"}
    names |= {"logprob_delta", "logprob_ci", "verdict", "caveats"}
    assert names <= set(by_new["int4"])
    assert by_new["int4"]["verdict"] == "worse"
    assert by_new["int4"]["pairs"] == 60
    assert by_new["int4"]["ci"][0] < by_new["int4"]["delta"] < by_new["int4"]["ci"][1] < 0
    assert by_new["int8"]["verdict"] == "too few to say"
    assert any("saturated" in caveat for caveat in by_new["int8"]["caveats"])
    assert {part["length"] for part in by_new["int4"]["by_length"]} == {512, 1024}
    assert [part["band"] for part in by_new["int4"]["by_depth"]] == ["start", "middle", "end"]
    assert {"what": "in force: loss", "base": "0.0", "new": "0.4"} in by_new["int4"]["differs"]


def test_words(niah: Command, run: Path) -> None:
    said = niah("compare", run)
    assert said.code == 0
    assert "int4 is worse than bf16" in said.out
    assert "Too few pairs to say whether int8 differs from bf16: 100 % against 100 % right on 60 pairs" in said.out
    assert "find a drop of" in said.out
    assert "effective length" in said.out


def test_a_run_against_itself_is_never_worse(niah: Command, run: Path) -> None:
    said = niah("compare", run, run, "--json", "--fail-on", "worse", "--max-drop", "0")
    assert said.code == 0
    verdicts = {item["verdict"] for item in said.document()["comparisons"]}
    assert verdicts <= {"equivalent", "too few to say"}


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        (("--fail-on", "worse"), 1),
        (("--max-drop", "0.02"), 1),
        (("--max-drop", "0.9"), 0),
        (("--kv", "int8", "--fail-on", "worse"), 0),
        (("--kv", "int8", "--max-drop", "0"), 0),
        (("--kv", "int8", "--fail-on", "not-equivalent"), 1),
        (("--kv", "int8", "--margin", "0.1", "--fail-on", "not-equivalent"), 0),
    ],
)
def test_gates(niah: Command, run: Path, gate: tuple[str, ...], code: int) -> None:
    said = niah("compare", run, *gate, "--json")
    assert said.code == said.document()["exit"] == code
    assert (f"niah: {gate[-2]}" in said.err) == (code == 1)


def test_a_gate_does_not_pass_a_broken_setting(niah: Command, copy: Path) -> None:
    manifest = json.loads((copy / "run.json").read_text())
    manifest["settings"]["int4"]["broken"] = True
    _edit(copy, settings=manifest["settings"])
    said = niah("compare", copy, "--kv", "int4", "--json")
    assert said.code == 0
    item = said.document()["comparisons"][0]
    assert (item["verdict"], item["broken"]) == ("too few to say", True)
    assert niah("compare", copy, "--kv", "int4", "--fail-on", "worse").code == 3
    assert "BROKEN, not interpreted" in niah("compare", copy, "--kv", "int4").out


def test_few_contexts_are_said_wherever_they_decide(niah: Command, tmp_path: Path) -> None:
    path = package.run(
        **{**OWN, "backend": _loss(int4=0.6), "lengths": "512", "depths": 11, "trials": 4},
        kv=["bf16", "int4"],
        out=str(tmp_path),
    ).path
    document = niah("compare", path, "--json").document()
    item = document["comparisons"][0]
    assert (item["verdict"], item["contexts"]) == ("too few to say", 4)
    assert item["p"] < 0.001
    assert item["why"] == "4 of the 6 contexts (lengths × trials) that a verdict needs"
    assert item["by_length"][0]["why"] == item["why"]
    assert -1 <= item["ci"][0] <= item["delta"] <= item["ci"][1] <= 0
    said = niah("compare", path).out
    assert "Too few contexts (4, and a verdict needs 6) to say whether int4 differs from bf16" in said
    assert said.count("too few to say (4 of 6 contexts)") >= 3, "in the table, by length, and over all"
    gated = niah("compare", path, "--max-drop", "0.02")
    assert gated.code == 3, "neither beyond doubt nor to be passed in silence"
    assert "int4 cannot be judged: it seems to have fallen by more than --max-drop 0.02" in gated.err
    assert niah("compare", path, "--max-drop", "0.98").code == 0
    assert "rests on 4 texts" not in said
    shown = niah("show", path).out
    assert "The interval of bf16 and int4 rests on at most 4 texts (lengths × trials), too few to see" in shown
    line = next(line for line in niah("show", path, "--json").document()["settings"] if line["kv"] == "int4")
    assert (line["contexts"], line["ci_assumed"]) == (4, True)


def test_several_settings_are_corrected(niah: Command, run: Path) -> None:
    both = niah("compare", run, "--json").document()
    assert both["corrected"].startswith("2 comparisons: p and intervals are corrected")
    alone = niah("compare", run, "--kv", "int4", "--json").document()
    assert alone["corrected"] == ""
    wide, narrow = both["comparisons"][1], alone["comparisons"][0]
    assert (wide["together"], narrow["together"]) == (2, 1)
    assert (wide["confidence"], narrow["confidence"]) == (0.975, 0.95)
    assert wide["p_holm"] == pytest.approx(2 * narrow["p_holm"])
    assert wide["ci"][0] < narrow["ci"][0]
    assert "2 comparisons: p and intervals are corrected" in niah("compare", run).out
    assert "2 comparisons: p and intervals are corrected" in niah("compare", run, "--markdown").out


def test_two_runs_setting_by_setting(niah: Command, run: Path, other: Path) -> None:
    said = niah("compare", run, other, "--json")
    document = said.document()
    verdicts = {(item["base_kv"], item["new_kv"]): item["verdict"] for item in document["comparisons"]}
    assert verdicts == {("bf16", "bf16"): "too few to say", ("int8", "int8"): "worse"}
    assert any("int4 left out" in note for note in document["notes"])
    assert any(d["what"].startswith("asked: backend_options") for d in document["comparisons"][1]["differs"])


def test_another_base_and_several_runs(niah: Command, run: Path, other: Path) -> None:
    document = niah("compare", run, other, run, "--base", "int4", "--kv", "int8", "--json").document()
    assert [item["base_kv"] for item in document["comparisons"]] == ["int4", "int4"]
    assert [item["verdict"] for item in document["comparisons"]] == ["too few to say", "better"]


def test_another_model_is_compared_with_the_caveat(niah: Command, run: Path, other: Path) -> None:
    target = other.parent / "renamed"
    shutil.copytree(other, target, dirs_exist_ok=True)
    _edit(target, model={"name": "another", "revision": "2"})
    document = niah("compare", run, target, "--json").document()
    assert "the models differ (analytic and another)" in " ".join(document["comparisons"][0]["caveats"])


def test_markdown(niah: Command, run: Path) -> None:
    said = niah("compare", run, "--markdown")
    assert said.code == 0
    assert said.out.startswith("### KV settings compared")
    assert "| int4 | bf16 | 60 |" in said.out
    assert said.out.count("<details>") == said.out.count("</details>") == 3


def test_python(run: Path, other: Path) -> None:
    report = package.compare(run, package.load(other))
    frame = report.frame()
    assert list(frame["verdict"]) == ["too few to say", "worse"]
    assert frame["ci_high"].iloc[1] < 0


def test_runs_that_asked_other_questions(niah: Command, run: Path, tmp_path: Path) -> None:
    changes: dict[str, dict[str, Any]] = {
        "task": {"task": "single"},
        "seed": {"seed": 5},
        "depths": {"depths": 3},
        "haystack": {"haystack": "noise"},
        "answer budget": {"answer_budget": 30},
    }
    for name, change in changes.items():
        new = package.run(**{**OWN, "trials": 1, **change}, kv=["bf16"], out=str(tmp_path / name)).path
        said = niah("compare", run, new)
        assert said.code == 2, name
        assert said.err.startswith("niah: nothing can be compared.")
        assert f"{name} " in said.err
        assert said.err.count("\n") == 1


def test_part_of_the_questions_is_enough(niah: Command, run: Path, tmp_path: Path) -> None:
    new = package.run(**{**OWN, "lengths": "512", "trials": 3}, kv=["bf16"], out=str(tmp_path)).path
    said = niah("compare", run, new, "--json")
    assert said.code == 0
    item = said.document()["comparisons"][0]
    assert item["pairs"] == 15
    assert any("45 cells only in the base" in caveat for caveat in item["caveats"])


def test_a_running_run_is_compared_as_far_as_it_is(niah: Command, copy: Path) -> None:
    _edit(copy, status="running")
    document = niah("compare", copy, "--json").document()
    assert any("is running: 180 of 180 cells so far" in note for note in document["notes"])


BAD = [
    (("--margin", "0"), 2, "the margin cannot be 0: no number of trials"),
    (("--margin", "2"), 2, "the margin cannot be 2"),
    (("--bar", "1"), 2, "the bar cannot be 1"),
    (("--max-drop", "-1"), 2, "--max-drop cannot be -1"),
    (("--max-drop", "5"), 2, "0.02 is 2 points"),
    (("--fail-on", "worst"), 2, "Did you mean 'worse'?"),
    (("--base", "int9"), 2, "has no KV setting 'int9'"),
    (("--kv", "in8"), 2, "Did you mean 'int8'?"),
    (("--kv", "bf16"), 2, "no setting besides 'bf16'"),
    (("-o", "edge.txt"), 2, "must end in .png"),
    (("-o", "edge.png"), 2, "no setting has both KV bytes and an accuracy"),
]


@pytest.mark.parametrize(("wrong", "code", "words"), BAD, ids=[" ".join(case[0]) for case in BAD])
def test_wrong_use(niah: Command, run: Path, wrong: tuple[str, ...], code: int, words: str) -> None:
    said = niah("compare", run, *wrong)
    assert said.code == code
    assert words in said.err
    assert said.err.count("\n") == 1, "one sentence"
    assert said.out == ""


def test_broken_folders(niah: Command, copy: Path, tmp_path: Path) -> None:
    missing = niah("compare", tmp_path / "nowhere")
    assert (missing.code, missing.err.count("\n")) == (6, 1)
    assert "there is no run folder" in missing.err

    rows = (copy / "rows.jsonl").read_text()
    (copy / "rows.jsonl").write_text("")
    empty = niah("compare", copy)
    assert empty.code == 2
    assert "has no answered cell yet" in empty.err

    newer = json.loads(rows.splitlines()[0]) | {"schema": 99}
    (copy / "rows.jsonl").write_text(json.dumps(newer) + "\n")
    ahead = niah("compare", copy)
    assert ahead.code == 6
    assert "written by a newer niah" in ahead.err

    (copy / "rows.jsonl").write_text(rows + "{nonsense\n")
    torn = niah("compare", copy, "--json")
    assert torn.code == 0
    assert any("1 lines of rows.jsonl cannot be read" in note for note in torn.document()["notes"])

    (copy / "run.json").write_text("{")
    assert niah("compare", copy).code == 6


def test_a_run_without_reference(niah: Command, tmp_path: Path) -> None:
    path = package.run(**{**OWN, "trials": 1}, kv=["int8", "int4"], reference=False, out=str(tmp_path)).path
    said = niah("compare", path)
    assert said.code == 2
    assert "no reference setting; name one with --base: int8, int4" in said.err
    assert niah("compare", path, "--base", "int8").code == 0


def test_no_run_at_all(niah: Command) -> None:
    assert niah("compare").code == 2
