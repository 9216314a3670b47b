"""Seconds that ``niah compare`` takes on a large run: two settings of 50 lengths × 10 depths × 10 trials each.

.venv/bin/python bench/compare.py [--rows 10000]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from common import Clock

from niah.api import compare
from niah.store.folder import RunFolder
from niah.store.schema import Row

DEPTHS = 10
TRIALS = 10


def write_run(out: Path, rows: int) -> Path:
    """A run folder with made-up answers: ``rows`` in two settings."""
    rng = random.Random(1)
    lengths = [512 * (i + 1) for i in range(max(1, rows // (2 * DEPTHS * TRIALS)))]
    with RunFolder.find_or_create(out, "bench", "0", "2026-01-01", fresh=False) as folder:
        settings = {kv: {"asked": {}, "effective": {}, "broken": False} for kv in ("bf16", "int8")}
        folder.write_manifest({"schema": 1, "status": "finished", "reference": "bf16", "settings": settings})
        lines = []
        for kv, chance in (("bf16", 0.9), ("int8", 0.87)):
            for length in lengths:
                for trial in range(TRIALS):
                    for step in range(DEPTHS):
                        right = rng.random() < chance
                        key = f"{length}-{trial}-{step}"
                        row = Row(
                            cell_id=f"{kv}-{key}", pair_id=key, backend="oracle", model="made", kv=kv, task="multikey",
                            haystack="chronicle", length=length, depth=step / (DEPTHS - 1), trial=trial,
                            outcome="answered", correct=right, score=float(right), logprob=-rng.random(),
                        )  # fmt: skip
                        lines.append(json.dumps(row.to_json()))
        (folder.path / "rows.jsonl").write_text("\n".join(lines) + "\n")
        return folder.path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    args = parser.parse_args()
    clock = Clock()
    with tempfile.TemporaryDirectory() as out:
        path = write_run(Path(out), args.rows)
        started = time.perf_counter()
        with clock.span("compare"):
            report = compare(path)
        with clock.span("document"):
            document = report.to_json()
        with clock.span("markdown"):
            report.markdown()
        total = time.perf_counter() - started
    item = document["comparisons"][0]
    for name, seconds in clock.spans.items():
        print(f"{name:<10} {seconds:6.2f} s")
    print(
        f"{'all':<10} {total:6.2f} s for {args.rows:,} rows, {item['pairs']:,} pairs: {item['verdict']} (target: 5 s)"
    )


if __name__ == "__main__":
    main()
