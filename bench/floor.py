"""The floor: raw forward passes over the same unique tokens and decode steps, against niah's whole run, in one run.

    python bench/floor.py [--lengths 1k,2k,4k] [--depths 11] [--trials 1]

niah's time holds planning, loading, canary, building, asking, scoring, rows, figures and report; the floor's holds
loading and forward passes only. Both load the model once.
"""

from __future__ import annotations

import tempfile
import time

import torch
from common import arguments, config_of, loaded_model, peak_mib, plan_of
from transformers import DynamicCache

from niah.api import execute, plan_run


def floor_seconds(args, passes: list[tuple[int, int, list[int]]]) -> float:
    """Raw passes: each entry is (context tokens, tail tokens, tokens of each decode step)."""
    started = time.perf_counter()
    plan = plan_of(args, "unused")
    loaded = loaded_model(plan)
    chunk = plan.options.prefill_chunk
    with torch.inference_mode():
        for context, tail, steps in passes:
            cache = DynamicCache(config=loaded.model.config)
            for size in [*(min(chunk, context - at) for at in range(0, context, chunk)), tail, *steps]:
                ids = torch.randint(1000, 40000, (1, size))
                loaded.model(input_ids=ids, logits_to_keep=1, **{loaded.cache_argument: cache})
    return time.perf_counter() - started


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    from niah.backends.transformers import packed as _packed

    passes: list[tuple[int, int, list[int]]] = []
    answer_packed = _packed.answer_packed

    def recording(forward, questions, context_tokens, ends, device):
        sizes: list[int] = []

        def counted(ids, positions, mask, keep):
            sizes.append(len(ids))
            return forward(ids, positions, mask, keep)

        answer_packed(counted, questions, context_tokens, ends, device)
        passes.append((context_tokens, sizes[0], sizes[1:]))

    from niah.backends.transformers import session as _hf_session

    _hf_session.answer_packed = recording
    with tempfile.TemporaryDirectory() as out:
        started = time.perf_counter()
        outcome = execute(plan_run(config_of(args, out)))
        niah_s = time.perf_counter() - started
    grid = passes[1:]  # the first one is the canary's
    tokens = sum(context + tail for context, tail, _ in grid)
    print(f"{outcome.answered} cells, {tokens:,} unique prompt tokens, {sum(len(s) for _, _, s in grid)} decode steps")
    print(f"niah, whole run {niah_s:8.1f} s   (peak {peak_mib():,.0f} MiB)", flush=True)
    floor_s = floor_seconds(args, grid)
    print(f"floor           {floor_s:8.1f} s")
    print(f"niah / floor    {niah_s / floor_s:8.3f}")


if __name__ == "__main__":
    main()
