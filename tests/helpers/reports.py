"""A made-up run with everything in it that a report must cope with."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from niah.store.schema import Row
from niah.types import KVUsage, Timing

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} \u2028 \ud83d"
LENGTHS = (512, 1024, 2048, 4096, 8192)
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
KVS = ("bf16", "int8", "streaming(sinks=4,window=1024)", "kivi2")
BYTES_PER_TOKEN = {"bf16": 23040, "int8": 12240, "streaming(sinks=4,window=1024)": 23040, "kivi2": 4320}


def stored_tokens(kv: str, length: int) -> int:
    tokens = length - 13
    return min(tokens, 1028) if kv.startswith("streaming") else tokens


def usage(kv: str, length: int) -> KVUsage:
    size = stored_tokens(kv, length) * BYTES_PER_TOKEN[kv]
    return KVUsage(
        tokens=length - 13,
        logical_bytes=size,
        allocated_bytes=size + 16 * BYTES_PER_TOKEN[kv],
        formula_bytes=size,
        reference_bytes=(length - 13) * 23040,
        naive_mha_bytes=(length - 13) * 69120,
        source="measured_tensors",
    )


def chance(kv: str, length: int, depth: float) -> float:
    if kv == "kivi2":
        return 0.05
    if kv.startswith("streaming"):
        return 0.97 if (1 - depth) * length < 1000 else 0.0
    base = 1.0 if length <= 2048 else 0.97 - 0.12 * (length / 8192) * (1 if 0.2 < depth < 0.8 else 0.3)
    return base - (0.09 if kv == "int8" and length >= 4096 else 0.0)


def make_row(kv: str, length: int, depth: float, trial: int, rng: random.Random, **changes: Any) -> Row:
    right = rng.random() < chance(kv, length, depth)
    value = str(rng.randrange(1_000_000, 10_000_000))
    fields: dict[str, Any] = {
        "cell_id": f"{kv}|{length}|{depth}|{trial}",
        "pair_id": f"{length}|{depth}|{trial}",
        "backend": "transformers",
        "model": "SmolLM2-135M-Instruct",
        "kv": kv,
        "task": "multikey",
        "haystack": "chronicle",
        "length": length,
        "depth": depth,
        "trial": trial,
        "depth_real": min(1.0, depth + 0.0021),
        "prompt_tokens": length - 32,
        "engine_prompt_tokens": length - 32,
        "answer_budget": 32,
        "output_tokens": 19,
        "outcome": "answered",
        "correct": right,
        "score": 1.0 if right else 0.0,
        "scorer": "contains@1",
        "why": "found the value" if right else "another needle's value",
        "answer": f" {value}." if right else " 1234567.",
        "expected": (value,),
        "logprob": -0.2 if right else -4.5,
        "stop": "stop",
        "cached_tokens": length // 2,
        "kv_memory": usage(kv, length),
        "timing": Timing(0.4, 0.5, 0.9),
        "prompt_sha256": "ab" * 32,
        "finished_at": "2026-11-29T18:20:03+00:00",
    }
    return Row(**(fields | changes))


def no_answer(outcome: str, error: str) -> dict[str, Any]:
    return {"outcome": outcome, "correct": None, "score": None, "error": error, "kv_memory": KVUsage(), "logprob": None}


def special(kv: str, length: int, depth: float, trial: int) -> dict[str, Any]:
    """What is out of the ordinary in one cell of the made-up run."""
    place = (kv, length, depth)
    if place == ("int8", 8192, 0.5):
        return no_answer("failed", "out_of_memory: 8192 tokens: out of memory")
    if place == ("int8", 4096, 0.25) and trial >= 4:
        return no_answer("failed", "engine_error: it stopped")
    if place == ("bf16", 1024, 0.75):
        return no_answer("truncated", "answer_budget: 32 tokens used up")
    if (*place, trial) == ("bf16", 2048, 0.5, 0):
        return no_answer("refused", "refused: the model declined")
    if (*place, trial) == ("int8", 512, 0.0, 0):
        return {"answer": HOSTILE, "why": HOSTILE, "correct": False, "score": 0.0}
    if (*place, trial) == ("int8", 512, 0.25, 0):
        return {"kv_memory": replace(usage(kv, length), logical_bytes=6_000_000)}
    return {}


def make_rows(trials: int = 6) -> list[Row]:
    rng = random.Random(7)
    return [
        make_row(kv, length, depth, trial, rng, **special(kv, length, depth, trial))
        for kv in KVS
        for length in LENGTHS
        for depth in DEPTHS
        for trial in range(trials)
        if (kv, length, depth) != ("int8", 8192, 1.0)  # planned, but not run
    ]


def manifest() -> dict[str, Any]:
    settings = {}
    for kv in KVS:
        passed = kv != "kivi2"
        asked = {"name": kv, "k_dtype": "bf16" if passed else "int2", "v_dtype": "bf16", "window": None, "sinks": 0}
        effective: dict[str, Any] = {"k_dtype": asked["k_dtype"], "v_dtype": "bf16", "attention": "sdpa", "threads": 1}
        if kv == "int8":
            asked |= {"k_dtype": "int8", "v_dtype": "int8"}
            effective |= {"k_dtype": "int8", "v_dtype": "bf16", "attention": "eager"}
        settings[kv] = {
            "asked": asked,
            "effective": effective,
            "canary": {
                "passed": passed,
                "correct": 4 if passed else 0,
                "asked": 4,
                "why": "4 of 4 right" if passed else "0 of 4 right where the reference has 4",
                "state": "passed" if passed else "broken",
            },
            "broken": not passed,
            "formula": "2 × 30 layers × 3 KV heads × 64 dims × T tokens × 2 B = 23,040 B × T",
        }
    return {
        "schema": 1,
        "niah": "0.1.0",
        "started_at": "2026-11-29T18:00:00+00:00",
        "finished_at": "2026-11-29T18:20:03+00:00",
        "status": "finished",
        "asked": {"backend": "transformers", "model": "smollm2", "kv": list(KVS), "lengths": list(LENGTHS),
                  "depths": list(DEPTHS), "trials": 6, "task": "multikey", "haystack": "chronicle", "seed": 0},
        "command": "niah run --kv bf16,int8,'streaming(sinks=4,window=1024)',kivi2 --lengths 512..8k",
        "model": {"name": "SmolLM2-135M-Instruct", "revision": "1", "context_tokens": 8192, "shape": {"layers": 30}},
        "reference": "bf16",
        "settings": settings,
        "haystack": {"name": "chronicle", "digest": "c0ffee"},
        "tokenizer": {"name": "smollm2", "digest": "beef", "assembly": "segments"},
        "hardware": {"device": "cpu", "cores": 2},
        "versions": {"python": "3.11", "niah": "0.1.0"},
        "plan": {"cells": 600},
    }  # fmt: skip
