"""The journal of batches: what is pending, whatever a kill leaves, and never through a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from niah.errors import StoreError
from niah.store.batches import Batch, BatchJournal, BatchRequest
from niah.store.folder import RunFolder


def test_the_journal_survives_what_a_kill_leaves(tmp_path: Path) -> None:
    with RunFolder.find_or_create(tmp_path, "run", "abc", "2026-01-01", fresh=False) as folder:
        journal = BatchJournal(folder)
        sent = BatchRequest("c1", 1, 0.5, 500, 12, "ff", "tests", (1, 2))
        first, second = Batch("aa", "auto", 1.0, (sent,)), Batch("bb", "auto", 2.0, (sent, sent))
        journal.announce(first)
        with (folder.path / "batches.jsonl").open("ab") as file:
            file.write(b'{"event":"arrived","label":"aa","i')
        journal.announce(second)
        journal.arrived(second, "batch_7")
        assert journal.pending("auto") == [first, second]
        assert journal.pending("auto")[0].batch_id is None
        assert journal.pending("other") == []
        assert second.request_of("bb-1") == sent
        assert [second.request_of(name) for name in ("bb-2", "aa-0", "bb-", "bb-x", "bb--1", "bb-²", "")] == [None] * 7
        journal.over(first, "lost")
        assert [batch.batch_id for batch in journal.pending("auto")] == ["batch_7"]
        (folder.path / "batches.jsonl").unlink()
        (folder.path / "batches.jsonl").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="leads out of the run folder"):
            journal.over(second, "lost")
