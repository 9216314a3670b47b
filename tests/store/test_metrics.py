from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from niah.store.folder import RunFolder
from niah.store.metrics import append_sample, read_samples, write_metrics


def test_samples_are_kept_in_order_and_survive_a_torn_line(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    append_sample(folder, "bf16", {"kv_cache_usage": 0.25})
    append_sample(folder, "bf16", {"kv_cache_usage": 0.5, "requests_running": 3})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"at": "2026')
    assert [s["kv_cache_usage"] for s in read_samples(tmp_path)] == [0.25, 0.5]
    written = write_metrics(tmp_path)
    assert written is not None
    table = pq.read_table(written)
    assert table.column("requests_running").to_pylist() == [None, 3]
    assert table.column("kv").to_pylist() == ["bf16", "bf16"]


def test_a_run_without_samples_has_no_file(tmp_path: Path) -> None:
    assert write_metrics(tmp_path) is None
    assert not (tmp_path / "metrics.parquet").exists()
