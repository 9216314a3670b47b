"""Data sets through ``datasets``, on local files made here; the hub is played."""

from __future__ import annotations

import builtins
import gc
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from niah.errors import ConfigError, MissingDependency
from niah.haystacks.hf import HfDataset, HfOptions, Source, open_hf, parse

pytest.importorskip("datasets")

ROWS = ["One fish. Two fish.", "", "Red fish!\r\nBlue fish?", None, "Old fish."]
TEXT = "One fish. Two fish.\n\nRed fish!\nBlue fish?\n\nOld fish."


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path_factory.mktemp("datasets")))
    yield
    # files that ``datasets`` left open are closed here, under this test's own filters
    gc.collect()


# the csv reader of ``datasets`` leaves its files to the garbage collector
csv_left_open = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")


def _open(argument: object) -> HfDataset:
    return open_hf(HfOptions(), str(argument))


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "fish.parquet"
    table = {"id": list(range(5)), "body": ROWS, "title": [f"Title {i}" for i in range(5)]}
    pq.write_table(pa.table(table), path)
    return path


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    path = tmp_path / "fish.jsonl"
    path.write_text("\n".join(json.dumps({"title": "T", "text": row}) for row in ROWS))
    return path


def test_rows_are_paragraphs_of_the_first_column_with_text(parquet: Path) -> None:
    opened = _open(parquet)
    assert opened.column == "body"
    assert "".join(opened.segments(0)) == TEXT
    assert list(opened.segments(0))[:3] == ["One fish.", " Two fish.", "\n\nRed fish!"]


def test_a_column_named_text_is_preferred_and_another_can_be_asked_for(jsonl: Path, parquet: Path) -> None:
    assert _open(jsonl).column == "text"
    assert "".join(_open(jsonl).segments(0)) == TEXT
    assert list(_open(f"{parquet}:train#title").segments(0))[:2] == ["Title 0", "\n\nTitle 1"]
    assert _open(f"{parquet}#title").digest != _open(parquet).digest


@csv_left_open
def test_json_and_csv_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"text": "A one."}, {"text": "A two."}]))
    assert "".join(_open(tmp_path / "a.json").segments(0)) == "A one.\n\nA two."
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "2.csv").write_text("text\nSecond.\n")
    (folder / "1.csv").write_text("text\nFirst.\n")
    assert "".join(_open(folder).segments(0)) == "First.\n\nSecond."


def test_streams_start_at_other_rows_and_hold_each_row_once(parquet: Path) -> None:
    opened = _open(f"{parquet}#title")
    streams = [[s.strip() for s in opened.segments(stream)] for stream in range(5)]
    assert all(sorted(s) == [f"Title {i}" for i in range(5)] for s in streams)
    assert len({s[0] for s in streams}) == 5
    assert streams[0][0] == "Title 0"


def test_the_revision_of_local_files_is_their_hash(parquet: Path) -> None:
    opened = _open(parquet)
    assert opened.revision == "sha256:" + hashlib.sha256(parquet.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("word", ("word", None, "train", None)),
        ("org/name", ("org/name", None, "train", None)),
        ("org/name/config:test#body", ("org/name", "config", "test", "body")),
        ("org/name:train[:10]", ("org/name", None, "train[:10]", None)),
    ],
)
def test_the_argument_is_taken_apart(argument: str, expected: tuple[str, str | None, str, str | None]) -> None:
    source = parse(argument)
    assert (source.name, source.config, source.split, source.column) == expected


def test_wrong_arguments_say_what_to_do(tmp_path: Path, parquet: Path) -> None:
    (tmp_path / "note.txt").write_text("Hello.")
    (tmp_path / "none").mkdir()
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "a.csv").write_text("text\nA.\n")
    (mixed / "b.json").write_text('{"text": "B."}')
    for argument, message in (
        ("", "needs a data set: use hf:NAME"),
        ("a/b/c/d", "'a/b/c/d' is neither a path nor ORG/NAME/CONFIG"),
        (tmp_path / "gone.parquet", "there is no file or folder '.*gone.parquet'"),
        (tmp_path / "note.txt", "is none of .parquet, .json, .jsonl, .csv; use text:PATH"),
        (tmp_path / "none", "folder '.*none' holds none of .parquet"),
        (mixed, "mixes kinds of files; give one file"),
        (f"{parquet}:test", "local files have no split 'test'"),
        (f"{parquet}#titel", "no column 'titel'. Did you mean 'title'?"),
        (f"{parquet}#id", "column 'id' does not hold text"),
    ):
        with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
            _open(argument)


@csv_left_open
def test_broken_and_empty_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not really")
    (tmp_path / "numbers.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match=r"cannot be opened: .*Check the file"):
        _open(tmp_path / "broken.parquet")
    with pytest.raises(ConfigError, match=r"none of its columns holds text: Known: a, b"):
        _open(tmp_path / "numbers.csv")


def test_the_hub_out_of_reach_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match=r"'hf:org/name' cannot be opened: .*or give a local path"):
        _open("org/name")


class _Rows(list[Mapping[str, Any]]):
    """What ``load_dataset`` gives for a streamed set of the hub."""

    features: Mapping[str, Any] | None = None
    info = SimpleNamespace(splits=None)


def _played(rows: list[Mapping[str, Any]]) -> HfDataset:
    return HfDataset(_Rows(rows), Source("org/name", "org/name", None, "train", None), "c0ffee")


def test_a_hub_set_is_read_at_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets
    import huggingface_hub

    asked: dict[str, Any] = {}

    class Api:
        def dataset_info(self, name: str) -> SimpleNamespace:
            asked["info"] = name
            return SimpleNamespace(sha="c0ffee")

    def load(name: str, config: str | None, **options: Any) -> _Rows:
        asked.update(options, name=name, config=config)
        return _Rows([{"text": "From the hub."}])

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(datasets, "load_dataset", load)
    opened = _open("org/name/small:test")
    assert opened.revision == "c0ffee"
    assert asked == {
        "info": "org/name",
        "name": "org/name",
        "config": "small",
        "split": "test",
        "streaming": True,
        "revision": "c0ffee",
    }
    assert list(opened.segments(0)) == ["From the hub."]


def test_streams_wrap_where_the_number_of_rows_is_not_known() -> None:
    opened = _played([{"text": f"Row {i}."} for i in range(7)])
    streams = [[s.strip() for s in opened.segments(stream)] for stream in range(4)]
    assert all(sorted(s) == [f"Row {i}." for i in range(7)] for s in streams)
    assert streams[0][0] == "Row 0."
    assert streams[1][0] != "Row 0."


def test_a_row_that_is_no_text_is_named() -> None:
    opened = _played([{"text": "Fine."}, {"text": 7}])
    with pytest.raises(ConfigError, match="column 'text' holds int, not text"):
        list(opened.segments(0))


def test_no_rows_are_refused() -> None:
    with pytest.raises(ConfigError, match="has no rows"):
        _played([])


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name == "datasets":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependency, match=r"niah-kv\[hf\]"):
        _open("org/name")
