"""What the benchmarks share: the same prompts for both sides, and a table of seconds and ratios."""

from __future__ import annotations

import argparse
import asyncio
import platform
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from niah.config import RunConfig, build_config
from niah.runner.plan import Plan, make_plan


@dataclass
class Clock:
    """Named spans of seconds."""

    spans: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.spans[name] = self.spans.get(name, 0.0) + time.perf_counter() - started


def arguments(description: str, lengths: str = "1k,2k,4k", depths: str = "11") -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--lengths", default=lengths)
    parser.add_argument("--depths", default=depths)
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--threads", type=int, default=None)
    return parser.parse_args()


def config_of(args: argparse.Namespace, out: str, kv: str = "bf16") -> RunConfig:
    options = {"threads": args.threads} if args.threads else {}
    return build_config(
        {
            "backend": {"name": "transformers", "options": options},
            "model": args.model,
            "kv": [kv],
            "reference": False,
            "answer_budget": 16,
            "grid": {"lengths": args.lengths, "depths": args.depths, "trials": args.trials},
            "out": out,
        }
    )


def plan_of(args: argparse.Namespace, out: str, kv: str = "bf16") -> Plan:
    plan = make_plan(config_of(args, out, kv))
    if plan.problems:
        raise SystemExit("; ".join(p.sentence() for p in plan.problems))
    return plan


def loaded_model(plan: Plan) -> Any:
    """The plan's model as niah loads it, for the side that is compared."""
    from niah.backends.transformers.load import load_model

    return load_model(plan.options, plan.info)  # type: ignore[arg-type]


def peak_mib() -> float:
    """Peak resident memory of this process so far, MiB."""
    scale = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 2**20


def ask_all(plan: Plan, kv: Any, prompts: list[list[Any]]) -> tuple[list[list[Any]], float, int]:
    """niah's own answers to groups of prompts: (replies, seconds without loading, forward passes behind contexts)."""
    from niah.engines.base import SessionRequest

    async def go() -> tuple[list[list[Any]], float, int]:
        async with plan.backend.open(plan.options, plan.info) as engine:
            request = SessionRequest(kv, max(plan.lengths), reuse=True, is_complete=plan.builder.task.is_complete)
            async with engine.session(request) as session:
                started = time.perf_counter()
                replies = [await session.answer(group) for group in prompts]
                return replies, time.perf_counter() - started, session.decode_steps  # type: ignore[attr-defined]

    return asyncio.run(go())
