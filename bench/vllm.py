"""vLLM in process, the same prompts three ways in one run: one by one, `LLM.generate` over all, and niah.

    .venv-vllm/bin/python bench/vllm.py [--lengths 1k] [--depths 11]

Engine loads are reported apart. Compute is fp32 unless NIAH_BENCH_DTYPE says bf16: without bf16 hardware vLLM's bf16
is slow.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from pathlib import Path

from common import arguments

# this folder stands first in the path of a script, and this file has the engine's name
sys.path.remove(str(Path(__file__).parent))

from niah.config import build_config
from niah.engines.base import SessionRequest
from niah.kv.grammar import parse_one
from niah.runner.plan import make_plan

NEW_TOKENS = 16


def number(text: str) -> str:
    found = re.search(r"\d{7}", text)
    return found.group() if found else text.strip()[:20]


def main() -> None:
    args = arguments(__doc__.splitlines()[0], lengths="1k")
    dtype = os.environ.get("NIAH_BENCH_DTYPE", "fp32")
    kv = parse_one("bf16" if dtype == "bf16" else "auto")
    plan = make_plan(
        build_config(
            {
                "backend": {"name": "vllm", "options": {"dtype": dtype}},
                "model": args.model,
                "kv": [kv.name],
                "reference": False,
                "answer_budget": NEW_TOKENS,
                "grid": {"lengths": args.lengths, "depths": args.depths, "trials": args.trials},
            }
        )
    )
    if plan.problems:
        raise SystemExit("; ".join(p.sentence() for p in plan.problems))
    groups = [plan.builder.prompts(group) for group in plan.groups]
    flat = [prompt for group in groups for prompt in group]
    unique = sum(len(g[0].context) + sum(len(p.tail) for p in g) for g in groups)
    print(f"{len(flat)} prompts, {sum(p.token_count for p in flat):,} tokens, {unique:,} unique; {dtype}")

    answers, niah_s, load_s = asyncio.run(ours(plan, kv, groups))
    print(
        f"niah                     {niah_s:8.1f} s   (engine load {load_s:.1f} s apart; log-probabilities included)",
        flush=True,
    )
    texts, batched_s, single_s = theirs(plan, flat)
    print(f"LLM.generate over all    {batched_s:8.1f} s   (prefix caching)")
    print(f"one by one, no caching   {single_s:8.1f} s")
    print(f"one by one / niah        {single_s / niah_s:8.2f} x")
    print(f"generate over all / niah {batched_s / niah_s:8.2f} x")
    same = sum(number(a) == number(t) for a, t in zip(answers, texts, strict=True))
    print(f"same number in {same} of {len(flat)} answers")


async def ours(plan, kv, groups) -> tuple[list[str], float, float]:
    started = time.perf_counter()
    async with plan.backend.open(plan.options, plan.info) as engine:
        request = SessionRequest(kv, max(plan.lengths), reuse=True, is_complete=plan.builder.task.is_complete)
        async with engine.session(request) as session:
            loaded = time.perf_counter()
            replies = await asyncio.gather(*(session.answer(group) for group in groups))
            done = time.perf_counter()
    return [reply.text for group in replies for reply in group], done - loaded, loaded - started


def theirs(plan, flat) -> tuple[list[str], float, float]:
    from vllm import LLM, SamplingParams

    words = {"fp32": "float32", "bf16": "bfloat16"}
    common = {
        "model": plan.info.source,
        "dtype": words[plan.options.dtype],
        "max_model_len": max(plan.lengths) + 1,
        "enforce_eager": True,
        "kv_cache_memory_bytes": 1 << 30,
        "max_num_seqs": plan.options.max_num_seqs,
    }
    params = SamplingParams(temperature=0.0, max_tokens=NEW_TOKENS)
    prompts = [{"prompt_token_ids": p.ids()} for p in flat]
    llm = LLM(**common, enable_prefix_caching=True)
    started = time.perf_counter()
    texts = [out.outputs[0].text for out in llm.generate(prompts, params, use_tqdm=False)]
    batched_s = time.perf_counter() - started
    llm.llm_engine.engine_core.shutdown()
    del llm
    llm = LLM(**common, enable_prefix_caching=False)
    started = time.perf_counter()
    for prompt in prompts:
        llm.generate([prompt], params, use_tqdm=False)
    return texts, batched_s, time.perf_counter() - started


if __name__ == "__main__":
    main()
