"""Run folders from strangers: no reading command connects, reads a key, or runs or opens what the folder names."""

from __future__ import annotations

import builtins
import contextlib
import io
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import niah as package
from niah import api

SENTINEL = "NIAH_TEST_SENTINEL_KEY"
KEY = "sentinel-9f2c7e51ab"
PLUGIN = """
from pathlib import Path
Path({marker!r}).write_text("loaded")
from dataclasses import replace
from niah.tasks.multikey import PLUGIN
PLUGIN = replace(PLUGIN, name="evil")
"""


class Listener:
    """Accepts connections on loopback and keeps what was sent."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.heard: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.heard.append(b"")
                with connection:
                    connection.settimeout(1)
                    with contextlib.suppress(OSError):
                        self.heard.append(connection.recv(65536))

    def close(self) -> None:
        self._socket.close()
        self._thread.join(5)


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    # an environment variable that is read is told from one that is not
    monkeypatch.setenv(SENTINEL, KEY)
    found = Listener()
    yield found
    found.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shards of a small run."""
    out = tmp_path_factory.mktemp("made")
    asked: dict[str, Any] = {"backend": "oracle", "kv": ["int8"], "lengths": "512", "depths": "0,50,100", "trials": 2}
    for shard in ("1/2", "2/2"):
        package.run(**asked, out=str(out), shard=shard)
    return out


def stranger(made: Path, tmp_path: Path, **config: Any) -> tuple[list[Path], str]:
    """Copies of the shards whose ``run.json`` asks for something else, and a cell's id."""
    folders = []
    for number, source in enumerate(sorted(p for p in made.iterdir() if (p / "run.json").is_file())):
        folder = tmp_path / "results" / f"2026-01-0{number + 1}-stranger-shard-{number}"
        shutil.copytree(source, folder)
        (folder / "surroundings.json").unlink()
        manifest = json.loads((folder / "run.json").read_text())
        manifest["asked"]["config"] |= config
        manifest.pop("rebuild")
        (folder / "run.json").write_text(json.dumps(manifest))
        folders.append(folder)
    row = json.loads((folders[0] / "rows.jsonl").read_text().splitlines()[0])
    return folders, row["cell_id"]


def read_all(niah: Any, folders: list[Path], cell: str, tmp_path: Path) -> dict[str, Any]:
    """Every reading command on the folders; ``view`` by its application, ``niah.load`` as a notebook would."""
    first, second = folders
    commands: dict[str, tuple[Any, ...]] = {
        "show": ("show", first),
        "list": ("list", "runs", "--out", first.parent),
        "cell": ("cell", first, cell),
        "cell json": ("cell", first, cell, "--json"),
        "cell prompt": ("cell", first, cell, "--prompt"),
        "report": ("report", first),
        "report of two": ("report", first, second, "-o", tmp_path / "two.html"),
        "compare": ("compare", first),
        "rescore": ("rescore", first),
        "merge": ("merge", first, second, "-o", tmp_path / "merged"),
    }
    for name in ("csv", "jsonl", "junit", "markdown", "parquet"):
        commands[f"export {name}"] = ("export", first, "--to", name, "-o", tmp_path / f"cells.{name}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "write_figures", lambda *_: [])  # drawn by rows alone, and slow
        said = {name: niah(*command) for name, command in commands.items()}
    package.load(first).frame()
    view(first.parent, first.name)
    return said


def view(results: Path, name: str) -> None:
    testclient = pytest.importorskip("starlette.testclient")
    from niah.view.app import make_app
    from niah.view.guard import Access
    from niah.view.runs import Results

    access = Access(hosts=frozenset({"testserver"}))
    client = testclient.TestClient(make_app(Results.open(results), access, "cividis"))
    assert client.get("/").status_code == 200
    assert client.get(f"/runs/{name}").status_code in (200, 422)


def check_all(said: dict[str, Any]) -> None:
    for name, one in said.items():
        assert "Traceback" not in one.err + one.out, (name, one.err)
        assert KEY not in one.err + one.out, name
        wanted = (2,) if name == "cell prompt" else (0, 3)
        assert one.code in wanted, (name, one.code, one.err)


def openai(listener: Listener, **more: Any) -> dict[str, Any]:
    return {"base_url": f"http://127.0.0.1:{listener.port}/v1", "api_key_env": SENTINEL, **more}


SERVERS: list[tuple[str, Callable[[Listener], dict[str, Any]]]] = [
    ("openai", openai),
    ("anthropic", openai),
    ("gemini", openai),
    ("vllm-server", lambda listener: {"base_url": f"http://127.0.0.1:{listener.port}"}),
]


@pytest.mark.parametrize(("backend", "options"), SERVERS, ids=[name for name, _ in SERVERS])
@pytest.mark.parametrize("model", ["some-model", "org/name"])
def test_no_reading_command_asks_a_server(
    niah: Any,
    made: Path,
    tmp_path: Path,
    listener: Listener,
    backend: str,
    options: Callable[[Listener], dict[str, Any]],
    model: str,
) -> None:
    asked = {"backend": {"name": backend, "options": options(listener)}, "model": model}
    folders, cell = stranger(made, tmp_path, **asked)
    said = read_all(niah, folders, cell, tmp_path)
    check_all(said)
    assert listener.heard == []
    assert "--trust-run" in said["cell"].err
    assert said["cell json"].document()["matches"] is None
    assert KEY not in "".join(p.read_text(errors="replace") for p in tmp_path.rglob("*") if p.is_file())


def test_who_trusts_the_folder_has_it_asked(niah: Any, made: Path, tmp_path: Path, listener: Listener) -> None:
    asked = {"backend": {"name": "openai", "options": openai(listener, attempts=1)}, "model": "some-model"}
    folders, cell = stranger(made, tmp_path, **asked)
    said = niah("cell", folders[0], cell, "--trust-run")
    assert said.code != 0
    assert any(KEY.encode() in heard for heard in listener.heard), "the listener hears what is sent"


def test_no_plugin_is_loaded(niah: Any, made: Path, tmp_path: Path, listener: Listener) -> None:
    marker = tmp_path / "marker"
    plugin = tmp_path / "evil.py"
    plugin.write_text(PLUGIN.format(marker=str(marker)))
    folders, cell = stranger(made, tmp_path, plugins=[str(plugin)])
    check_all(read_all(niah, folders, cell, tmp_path))
    assert not marker.exists()
    # what the user names is the user's
    assert niah("cell", folders[0], cell, "--prompt", "--plugin", plugin).code == 0
    assert marker.exists()


@pytest.mark.parametrize("backend", ["transformers", "llamacpp", "vllm", "vllm-server"])
def test_no_code_of_a_model_runs(niah: Any, made: Path, tmp_path: Path, listener: Listener, backend: str) -> None:
    marker = tmp_path / "marker"
    model = tmp_path / "model"
    model.mkdir()
    (model / "code.py").write_text(f"from pathlib import Path\nPath({str(marker)!r}).write_text('loaded')\n")
    custom = {name: f"code.{name}" for name in ("AutoConfig", "AutoModelForCausalLM", "AutoTokenizer")}
    (model / "config.json").write_text(json.dumps({"model_type": "odd", "auto_map": custom}))
    (model / "tokenizer_config.json").write_text(json.dumps({"auto_map": {"AutoTokenizer": ["code.Odd", "code.Odd"]}}))
    options = {"trust_remote_code": True} if backend != "llamacpp" else {}
    asked = {"backend": {"name": backend, "options": options}, "model": str(model)}
    folders, cell = stranger(made, tmp_path, **asked)
    check_all(read_all(niah, folders, cell, tmp_path))
    assert not marker.exists()


SECRET = "the sentinel text of a private file. It has a second sentence. " * 400


@pytest.mark.parametrize("how", ["file", "folder", "glob", "link", "hf file", "hub"])
def test_no_text_that_the_folder_names_is_opened(
    niah: Any, made: Path, tmp_path: Path, listener: Listener, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "secret.txt").write_text(SECRET)
    (private / "secret.jsonl").write_text("".join(json.dumps({"text": SECRET}) + "\n" for _ in range(3)))
    (tmp_path / "linked.txt").symlink_to(private / "secret.txt")
    haystack = {
        "file": ("text", str(private / "secret.txt")),
        "folder": ("text", str(private)),
        "glob": ("text", f"{private}/*.txt"),
        "link": ("text", str(tmp_path / "linked.txt")),
        "hf file": ("hf", str(private / "secret.jsonl")),
        "hub": ("hf", "org/private"),
    }[how]
    asked = {"haystack": {"name": haystack[0], "argument": haystack[1]}}
    folders, cell = stranger(made, tmp_path, **asked)
    opened: list[str] = []
    original = io.open

    def recorded(path: Any, *args: Any, **more: Any) -> Any:
        opened.append(str(path))
        return original(path, *args, **more)

    monkeypatch.setattr(io, "open", recorded)
    monkeypatch.setattr(builtins, "open", recorded)
    said = read_all(niah, folders, cell, tmp_path)
    assert any("rows.jsonl" in path for path in opened), "what is opened is seen"
    assert not [path for path in opened if "private" in path or "linked" in path]
    check_all(said)
    kept = "".join(p.read_text(errors="replace") for p in (tmp_path / "results").rglob("*") if p.is_file())
    assert "sentinel text" not in kept + "".join(one.out + one.err for one in said.values())
    assert "opens no file or data set that its folder names" in said["cell"].err
    # judging needs no text
    assert "judged without the text" in said["rescore"].err
    assert "0 judgements changed" in said["rescore"].out


@pytest.mark.parametrize("name", ["run.json", "rows.jsonl"])
def test_links_that_lead_out_are_not_followed(niah: Any, made: Path, tmp_path: Path, name: str) -> None:
    folders, cell = stranger(made, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    shutil.move(folders[0] / name, elsewhere)
    (folders[0] / name).symlink_to(elsewhere)
    for command in (("show", folders[0]), ("cell", folders[0], cell), ("report", folders[0]), ("rescore", folders[0])):
        said = niah(*command)
        assert said.code == 6, command
        assert "leads out of the run folder" in said.err
        assert "Traceback" not in said.err


@pytest.mark.parametrize("name", ["rows.jsonl", "run.json", "surroundings.json", "metrics.jsonl"])
def test_a_pipe_is_not_waited_for(niah: Any, made: Path, tmp_path: Path, name: str) -> None:
    folders, _ = stranger(made, tmp_path)
    (folders[0] / name).unlink(missing_ok=True)
    os.mkfifo(folders[0] / name)
    said = niah("report", folders[0])
    assert said.code in (0, 6)
    assert "Traceback" not in said.err


def test_files_are_written_into_the_folder_alone(niah: Any, made: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folders, _ = stranger(made, tmp_path)
    for name in ("report.html", "heatmap-bf16.png", "heatmap-int8.svg", "compare-int8.png", "memory.png"):
        (folders[0] / name).unlink(missing_ok=True)
        (folders[0] / name).symlink_to(victim)
    said = niah("report", folders[0])
    assert said.code in (0, 6)
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("name", ["../../out", "/etc/cron.d/x", "a/../../b", "..", "\x00", "con:", "\\..\\x"])
def test_names_of_settings_make_no_paths(niah: Any, made: Path, tmp_path: Path, name: str) -> None:
    folders, _ = stranger(made, tmp_path)
    folder = folders[0]
    rows = [json.loads(line) | {"kv": name} for line in (folder / "rows.jsonl").read_text().splitlines()]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    manifest = json.loads((folder / "run.json").read_text())
    manifest["settings"] = {name: {}}
    (folder / "run.json").write_text(json.dumps(manifest))
    before = {p for p in tmp_path.rglob("*") if folder not in p.parents}
    said = niah("report", folder)
    assert said.code == 0, said.err
    assert {p for p in tmp_path.rglob("*") if folder not in p.parents} == before
    assert all(p.parent == folder for p in folder.rglob("*"))


def test_a_run_that_asks_for_far_too_much_is_refused_at_once(niah: Any, made: Path, tmp_path: Path) -> None:
    grid = {"lengths": "512,900m", "depths": "1001", "trials": 10_000}
    folders, _ = stranger(made, tmp_path, grid=grid)
    rows = (folders[0] / "rows.jsonl").read_text().splitlines()
    rows += [json.dumps(json.loads(rows[0]) | {"cell_id": "huge", "length": 900 * 2**20})]
    (folders[0] / "rows.jsonl").write_text("\n".join(rows) + "\n")
    said = niah("cell", folders[0], "huge")
    assert "is longer than reading a run builds again" in said.err
    assert niah("report", folders[0]).code == 0


def test_the_env_file_of_a_run_folder_is_not_read(
    niah: Any, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders, _ = stranger(made, tmp_path)
    (folders[0] / ".env").write_text("NIAH_TEST_FROM_FOLDER=1\n")
    monkeypatch.chdir(folders[0])
    assert niah("show", ".").code == 0
    assert "NIAH_TEST_FROM_FOLDER" not in os.environ


@pytest.mark.parametrize("shard", [{"count": 10**9}, {"count": -5}, {"index": 10**15}, {"index": 0}, {"count": True}])
def test_shards_of_impossible_numbers_are_refused_at_once(
    niah: Any, made: Path, tmp_path: Path, shard: dict[str, Any]
) -> None:
    folders, _ = stranger(made, tmp_path)
    for folder in folders:
        manifest = json.loads((folder / "run.json").read_text())
        manifest["shard"] |= shard
        (folder / "run.json").write_text(json.dumps(manifest))
    said = niah("merge", *folders, "-o", tmp_path / "merged")
    assert said.code in (2, 6)
    assert len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "merged").exists()


def test_a_run_of_endless_settings_is_refused_at_once(niah: Any, made: Path, tmp_path: Path) -> None:
    folders, _ = stranger(made, tmp_path)
    manifest = json.loads((folders[0] / "run.json").read_text())
    manifest["settings"] = {f"s{number}": {} for number in range(20_000)}
    (folders[0] / "run.json").write_text(json.dumps(manifest))
    for command in (("show", folders[0]), ("report", folders[0]), ("compare", folders[0])):
        said = niah(*command)
        assert said.code == 6
        assert "a run that is read has at most 1,000" in said.err
    assert niah("list", "runs", "--out", folders[0].parent).code == 0


def test_a_setting_named_thousands_of_times_is_read_in_seconds(niah: Any, made: Path, tmp_path: Path) -> None:
    folders, cell = stranger(made, tmp_path, kv=["int8"] * 20_000)
    started = time.monotonic()
    assert niah("cell", folders[0], cell).code == 0
    assert time.monotonic() - started < 20
