"""The report of a large run: seconds to read and to write it, its size, and seconds until the page can be used.

python bench/report.py [--rows 10000]

Needs Chromium and playwright for the last figure; without them it is left out.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from common import peak_mib

from niah.report.data.surroundings import Surrounding, Surroundings
from niah.report.page.html import write_report
from niah.store.folder import RunFolder
from niah.store.read import RunRecord
from niah.store.schema import Row
from niah.types import KVUsage, Timing

KVS = {"bf16": 23_040, "int8": 12_240, "int4": 7_200, "kivi2": 4_320, "k8v4": 9_720}
LENGTHS = (4096, 8192, 16384, 32768, 65536, 131072)
DEPTHS = tuple(step / 10 for step in range(11))


def made_up_rows(count: int) -> list[Row]:
    """Rows of five settings; smaller caches lose more, in long texts and in their middle."""
    rng = random.Random(1)
    trials = -(-count // (len(KVS) * len(LENGTHS) * len(DEPTHS)))
    rows = []
    for index, (kv, size) in enumerate(KVS.items()):
        for length in LENGTHS:
            for depth in DEPTHS:
                for trial in range(trials):
                    loss = 0.02 * index * (length / 131_072) * (2 if 0.2 < depth < 0.8 else 1) + 0.01
                    rows.append(_row(kv, size, length, depth, trial, rng, right=rng.random() >= loss))
    return rows[:count]


def _row(kv: str, size: int, length: int, depth: float, trial: int, rng: random.Random, *, right: bool) -> Row:
    value = str(rng.randrange(1_000_000, 10_000_000))
    tokens = length - 24
    return Row(
        cell_id=f"{rng.getrandbits(64):016x}", pair_id=f"{length}-{depth}-{trial}", backend="transformers", model="m",
        kv=kv, task="multikey", haystack="chronicle", length=length, depth=depth, trial=trial, outcome="answered",
        depth_real=depth, prompt_tokens=tokens, engine_prompt_tokens=tokens, answer_budget=24, output_tokens=9,
        correct=right, score=float(right), scorer="exact/1", why=f"answered {value}", answer=f" {value}.",
        answer_prefix=True, expected=(value,), logprob=-rng.random() * (1 if right else 6), stop="stop",
        cached_tokens=tokens, kv_memory=KVUsage(tokens, tokens * size, tokens * size, None, tokens * size,
                                                tokens * 23_040, tokens * 69_120, "measured_tensors"),
        timing=Timing(rng.random(), 1 + rng.random(), 1 + rng.random()), prompt_sha256="ab" * 32,
        finished_at="2026-01-01T00:00:00+00:00",
    )  # fmt: skip


def made_up_surroundings(rows: list[Row]) -> Surroundings:
    text = "The miller of the valley counted his sacks and wrote the number down in a small book. " * 3
    pairs = {
        row.pair_id: Surrounding(
            text[:240], f"The special number is {row.expected[0]}.", text[:240], "Which?", "It is", matches=True
        )
        for row in rows
    }
    return Surroundings(dict(list(pairs.items())[:3000]))


def interactive_s(path: Path) -> float | None:
    """Seconds from opening the file until the table of cells stands and a cell opens."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto("about:blank")
        started = time.perf_counter()
        page.goto(path.as_uri(), wait_until="commit")
        page.locator("#table tbody td button").first.click()
        page.locator("#drawer").wait_for()
        elapsed = time.perf_counter() - started
        browser.close()
    return elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    count = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        path.mkdir()
        rows = made_up_rows(count)
        manifest: dict[str, Any] = {"settings": {kv: {} for kv in KVS}, "reference": "bf16", "plan": {"cells": count}}
        (path / "rows.jsonl").write_text("".join(_line(row) for row in rows))
        with RunFolder(path) as run:
            run.write_manifest(manifest)
        started = time.perf_counter()
        record = RunRecord.load(path)
        read_s = time.perf_counter() - started
        started = time.perf_counter()
        write_report([record], path / "report.html", around=[made_up_surroundings(rows)])
        write_s = time.perf_counter() - started
        size = (path / "report.html").stat().st_size
        usable = interactive_s(path / "report.html")
    shown = "not measured" if usable is None else f"{usable:.2f} s"
    print(
        f"{count:,} rows: read {read_s:.2f} s, report {write_s:.2f} s, {size / 1e6:.2f} MB, page usable after {shown}, "
        f"peak {peak_mib():,.0f} MiB"
    )


def _line(row: Row) -> str:
    import json

    return json.dumps(row.to_json()) + "\n"


if __name__ == "__main__":
    main()
