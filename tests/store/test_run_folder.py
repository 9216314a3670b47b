from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from niah.errors import StoreError
from niah.store.folder import RunFolder, list_runs, open_run, write_atomic
from niah.store.read import read_rows
from niah.store.schema import Row

TODAY = "2026-11-29"


def make(out: Path, *, today: str = TODAY, fresh: bool = False, label: str = "m-fake", identity: str = "abc123") -> Any:
    return RunFolder.find_or_create(out, label, identity, today, fresh=fresh)


def started(run: RunFolder, moment: str) -> Path:
    with run:
        run.write_manifest({"schema": 1, "started_at": moment})
    return run.path


def test_the_name_holds_date_label_and_identity(tmp_path: Path) -> None:
    with make(tmp_path / "results") as run:
        assert run.path == tmp_path / "results" / "2026-11-29-m-fake-abc123"
        assert run.path.is_dir()


@pytest.mark.parametrize(
    ("label", "safe"),
    [
        ("HuggingFaceTB/SmolLM2", "huggingfacetb-smollm2"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "run"),
        ("", "run"),
        ("ünï\x00code", "n-code"),
        ("a" * 300, "a" * 80),
        ("C:\\x", "c-x"),
    ],
)
def test_labels_cannot_leave_the_folder(tmp_path: Path, label: str, safe: str) -> None:
    with make(tmp_path, label=label) as run:
        assert run.path == tmp_path / f"{TODAY}-{safe}-abc123"


def test_identity_must_be_a_plain_hash(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="identity"):
        make(tmp_path, identity="../x")


def test_the_same_command_finds_its_run_on_another_day(tmp_path: Path) -> None:
    first = make(tmp_path)
    first.close()
    with make(tmp_path, today="2026-12-24", label="other") as again:
        assert again.path == first.path
    with make(tmp_path, identity="def456") as other:
        assert other.path != first.path


def test_an_identity_that_only_ends_alike_is_another(tmp_path: Path) -> None:
    make(tmp_path, identity="xabc123").close()
    with make(tmp_path, identity="abc123") as run:
        assert run.path.name == "2026-11-29-m-fake-abc123"


def test_fresh_makes_numbered_folders_and_the_newest_is_found(tmp_path: Path) -> None:
    started(make(tmp_path), "2026-11-29T10:00:00+00:00")
    second = started(make(tmp_path, fresh=True), "2026-11-29T11:00:00+02:00")
    third = started(make(tmp_path, fresh=True), "2026-11-29T10:30:00+00:00")
    assert second.name == "2026-11-29-m-fake-2-abc123"
    assert third.name == "2026-11-29-m-fake-3-abc123"
    # 11:00 at +02:00 is before 10:00 UTC: times are compared, not their texts
    with make(tmp_path) as found:
        assert found.path == third


def test_out_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("x")
    with pytest.raises(StoreError, match="is a file"):
        make(tmp_path / "results")


def test_out_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    with pytest.raises(StoreError, match=r"cannot make a run folder.*--out"):
        make(tmp_path / "x" / "results")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that nobody can write")
def test_out_that_cannot_be_written() -> None:
    with pytest.raises(StoreError, match="cannot make a run folder") as caught:
        make(Path("/proc/niah-results"))
    assert caught.value.exit_code == 6


def test_append_writes_one_line_a_row_at_once(tmp_path: Path, row: Callable[..., Row]) -> None:
    with make(tmp_path) as run:
        run.append(row("a", answer="two\nlines \u2028 end"))
        assert (run.path / "rows.jsonl").read_bytes().count(b"\n") == 1
        run.append(row("b"))
        assert [r.cell_id for r in read_rows(run).rows] == ["a", "b"]
        assert read_rows(run).rows[0].answer == "two\nlines \u2028 end"


def test_half_a_surrogate_pair_can_be_stored(tmp_path: Path, row: Callable[..., Row]) -> None:
    with make(tmp_path) as run:
        run.append(row(answer="\ud83d"))
        assert read_rows(run).rows[0].answer == "\ud83d"


@pytest.mark.parametrize("torn", [b'{"cell_id":"x"', b"\xff\x00", b"x" * 200_000])
def test_a_torn_tail_is_cut_and_kept(tmp_path: Path, row: Callable[..., Row], torn: bytes) -> None:
    with make(tmp_path) as run:
        run.append(row("a"))
    rows = run.path / "rows.jsonl"
    whole = rows.read_bytes()
    rows.write_bytes(whole + torn)
    with make(tmp_path) as run:
        run.append(row("b"))
    assert rows.read_bytes().startswith(whole)
    assert [r.cell_id for r in read_rows(run).rows] == ["a", "b"]
    assert read_rows(run).bad_lines == []
    assert (run.path / "rows.torn").read_bytes() == torn + b"\n"


def test_a_file_that_is_all_torn_is_emptied(tmp_path: Path, row: Callable[..., Row]) -> None:
    with make(tmp_path) as run:
        (run.path / "rows.jsonl").write_bytes(b"no newline")
        run.append(row("a"))
        assert [r.cell_id for r in read_rows(run).rows] == ["a"]


def test_a_full_disk_is_a_store_error_and_leaves_no_broken_line(
    tmp_path: Path, row: Callable[..., Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    with make(tmp_path) as run:
        run.append(row("a"))
        real = os.write

        def short_write(handle: int, data: bytes) -> int:
            if len(data) < 50:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(handle, bytes(data)[: len(data) // 2])

        monkeypatch.setattr("niah.store.folder.os.write", short_write)
        with pytest.raises(StoreError, match="no space left"):
            run.append(row("b"))
        monkeypatch.undo()
        assert read_rows(run).torn
        run.append(row("c"))
        assert [r.cell_id for r in read_rows(run).rows] == ["a", "c"]


def test_only_one_writer(tmp_path: Path, row: Callable[..., Row]) -> None:
    with make(tmp_path) as run:
        with pytest.raises(StoreError, match="being written by another process"):
            make(tmp_path)
        with pytest.raises(StoreError, match="being written by another process"):
            RunFolder(run.path).append(row())
        code = (
            "import sys; from pathlib import Path; from niah.store.folder import RunFolder; "
            f"RunFolder.find_or_create(Path({str(tmp_path)!r}), 'm-fake', 'abc123', {TODAY!r}, fresh=False)"
        )
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert other.returncode != 0
        assert "being written by another process" in other.stderr
        run.write_manifest({"schema": 1})
        assert open_run(run.path).manifest() == {"schema": 1}  # reading needs no lock
    make(tmp_path).close()


def test_close_gives_the_lock_back_and_writing_can_go_on(tmp_path: Path, row: Callable[..., Row]) -> None:
    run = make(tmp_path)
    run.append(row("a"))
    run.close()
    run.close()
    make(tmp_path).close()
    run.append(row("b"))
    run.close()
    assert len(read_rows(run).rows) == 2


def test_the_manifest_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with make(tmp_path) as run:
        run.write_manifest({"schema": 1, "status": "running", "model": {"name": "m–ü"}})
        run.write_manifest({"schema": 1, "status": "finished"})
        assert run.manifest() == {"schema": 1, "status": "finished"}

        def refuse(*_: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr("niah.store.folder.os.fsync", refuse)
        with pytest.raises(StoreError, match=r"run\.json"):
            run.write_manifest({"schema": 1, "status": "broken"})
        assert run.manifest()["status"] == "finished"
        assert [p.name for p in run.path.iterdir() if p.name.endswith(".tmp")] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "cannot be read"), ("[1]", "no JSON object"), ('{"schema": 7}', "written by a newer niah")],
)
def test_a_manifest_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(StoreError, match=message):
        RunFolder(tmp_path).manifest()


def test_links_out_of_the_folder_are_refused(tmp_path: Path, row: Callable[..., Row]) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("keep\n")
    with make(tmp_path / "results") as run:
        (run.path / "rows.jsonl").symlink_to(victim)
        with pytest.raises(StoreError, match="leads out of the run folder"):
            run.append(row())
        (run.path / "run.json").symlink_to(victim)
        with pytest.raises(StoreError, match="leads out of the run folder"):
            run.write_manifest({})
    assert victim.read_text() == "keep\n"


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", ".."])
def test_file_takes_names_only(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="not a file name"):
        RunFolder(tmp_path).file(name)


def test_a_linked_run_folder_is_not_taken_for_one(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    out = tmp_path / "results"
    out.mkdir()
    (out / "2026-11-28-m-abc123").symlink_to(target)
    with make(out) as run:
        assert not run.path.is_symlink()
    assert list(target.iterdir()) == []


def test_open_run_takes_a_run_or_the_newest_of_a_folder(tmp_path: Path) -> None:
    old = started(make(tmp_path, identity="aaa"), "2026-11-30T10:00:00+00:00")
    new = started(make(tmp_path, identity="bbb", today="2026-01-01"), "2026-12-01T10:00:00")
    make(tmp_path, identity="ccc").close()  # no manifest: not a run yet
    assert open_run(old).path == old
    assert open_run(tmp_path).path == new
    assert open_run(tmp_path / "latest").path == new
    assert [run.path for run in list_runs(tmp_path)] == [new, old]
    assert list_runs(tmp_path / "none") == []


def test_open_run_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no run folder"):
        open_run(tmp_path / "none")
    with pytest.raises(StoreError, match=r"no run\.json and no run folders"):
        open_run(tmp_path)
    (tmp_path / "rows.jsonl").write_text("")
    with pytest.raises(StoreError, match=r"run\.json is missing"):
        open_run(tmp_path)
    with pytest.raises(StoreError, match="is a file"):
        open_run(tmp_path / "rows.jsonl")
    with pytest.raises(StoreError, match=r"no run\.json"):
        RunFolder(tmp_path).manifest()


def test_write_atomic_does_not_write_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("keep")
    (tmp_path / f".report.html.{os.getpid()}.tmp").symlink_to(victim)
    write_atomic(tmp_path / "report.html", b"new")
    assert victim.read_text() == "keep"
    assert (tmp_path / "report.html").read_bytes() == b"new"


def test_a_killed_writer_loses_no_finished_row(tmp_path: Path, row: Callable[..., Row]) -> None:
    line = json.dumps(row("z").to_json())
    code = (
        "import os, signal\nfrom pathlib import Path\nfrom niah.store.folder import RunFolder\n"
        "from niah.store.schema import Row\nimport json\n"
        f"run = RunFolder.find_or_create(Path({str(tmp_path)!r}), 'm', 'abc123', {TODAY!r}, fresh=False)\n"
        f"run.append(Row.from_json(json.loads({line!r})))\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    with make(tmp_path) as run:
        assert [r.cell_id for r in read_rows(run).rows] == ["z"]
