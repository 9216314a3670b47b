"""The answer cache on disk: what goes in comes out, and what is broken is said or asked again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from niah.errors import StoreError
from niah.store.answers import FILE, AnswerStore
from niah.types import Answer, KVUsage, Timing
from tests.helpers.known import known

ANSWER = Answer(
    text="half a pair \ud83d and NUL \0",
    stop="stop",
    prompt_tokens=10,
    output_tokens=None,
    cached_tokens=3,
    logprob=-0.25,
    timing=Timing(1.0, 1.5, 2.0),
    memory=KVUsage(tokens=12, logical_bytes=2**40, source="reported"),
)


def test_round_trip_and_replacement(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "new" / "folder") as store:
        assert store.get("a") is None
        store.put("a", ANSWER)
        store.put("b", Answer("other", "end", 1, 2))
        store.put("b", Answer("newer", "end", 1, 2))
    with AnswerStore(tmp_path / "new" / "folder") as again, AnswerStore(tmp_path / "new" / "folder") as beside:
        assert again.get("a") == ANSWER
        assert known(beside.get("b")).text == "newer"


def test_an_entry_of_another_version_is_no_answer(tmp_path: Path) -> None:
    with AnswerStore(tmp_path) as store:
        store.put("a", ANSWER)
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("UPDATE answers SET answer = '{\"text\": 5}'")
        database.execute("INSERT INTO answers VALUES ('b', 'no json', '')")
    database.close()
    with AnswerStore(tmp_path) as store:
        assert store.get("a") is store.get("b") is None
        store.put("a", ANSWER)
        assert store.get("a") == ANSWER


def test_what_is_no_store_is_said(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"this is not a database at all" * 100)
    with pytest.raises(StoreError, match="cannot be used"):
        AnswerStore(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot make the answer cache"):
        AnswerStore(tmp_path / "file")
