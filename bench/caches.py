"""Cache formats against bf16 in one run: prefill and decode speed, and bytes really held against the formula.

    python bench/caches.py [--kv bf16,int8,kivi2] [--tokens 4096] [--decode 16] [--model smollm2] [--threads 1]

`held` is the most that the storages held, `formula` what `niah memory` says for the same tokens. What attention is
given of one layer (`copy`) is decoded for one layer at a time and freed again; it is no part of the cache and stands
apart.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from common import loaded_model

from niah.backends.transformers.cache.build import build_cache
from niah.config import build_config
from niah.kv.config import KVConfig
from niah.kv.grammar import parse_kv
from niah.kv.memory.totals import kv_bytes, reference_bytes
from niah.models.shape import ModelShape
from niah.runner.host import this_host
from niah.runner.plan import make_plan

DEFAULT = (
    "bf16,int8,fp8_e4m3,fp8_e5m2,fp8(scales=dynamic),k8v4,int4,int4+skip(0,-1),kivi4,kivi2,quanto4,quanto2,hqq4,hqq8"
)


@dataclass
class Measured:
    kv: str
    prefill_tokens_s: float
    decode_tokens_s: float
    held_bytes: int
    formula_bytes: int
    copy_bytes: int


def watch(layer: Any, seen: list[int]) -> None:
    """Note how many bytes of what the layer gives attention are copies, not views of its storage."""
    update = layer.update

    def watched(*args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        read = update(*args, **kwargs)
        own = layer.storages()
        seen[0] = max(seen[0], sum(t.nbytes for t in read if t.untyped_storage().data_ptr() not in own))
        return read

    layer.update = watched


def measure(loaded: Any, shape: ModelShape, kv: KVConfig, ids: list[int], decode: int, chunk: int) -> Measured:
    tokens = len(ids) - decode
    cache, copies = build_cache(kv, shape), [0]
    for layer in cache.layers:
        layer.reserve(len(ids), 0)
        watch(layer, copies)
    size = tokens if any(layer.reads_raw for layer in cache.layers) else kv.prefill_chunk or chunk
    with torch.inference_mode():
        started = time.perf_counter()
        for start in range(0, tokens, size):
            piece = ids[start : min(start + size, tokens)]
            loaded.step(piece, list(range(start, start + len(piece))), cache)
        prefill_s = time.perf_counter() - started
        # a question's tokens do not join groups that were packed with the context
        for layer in cache.layers:
            layer.hold = any(one.reads_raw for one in cache.layers)
        started = time.perf_counter()
        for position in range(tokens, len(ids)):
            loaded.step(ids[position : position + 1], [position], cache)
        decode_s = time.perf_counter() - started
    held = sum(layer.peak_bytes for layer in cache.layers)
    formula = kv_bytes(shape, kv, len(ids))
    if kv.prefill_reads == "raw_chunk":
        # packed at the end of the context; what is decoded stays in 16 bit
        formula = kv_bytes(shape, kv, tokens) + reference_bytes(shape, decode)
    return Measured(kv.name, tokens / prefill_s, decode / decode_s, held, formula, copies[0])


def runs(kv: KVConfig, plan: Any) -> bool:
    problems = plan.backend.problems(plan.options, kv, plan.info.shape, this_host())
    if problems:
        print(f"{kv.name:<24} refused: {'; '.join(p.reason for p in problems)}", flush=True)
    return not problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kv", default=DEFAULT)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--decode", type=int, default=16)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    options = {"threads": args.threads} if args.threads else {}
    plan = make_plan(
        build_config(
            {
                "backend": {"name": "transformers", "options": options},
                "model": args.model,
                "kv": ["reference"],
                "reference": False,
                "grid": {"lengths": "1k", "depths": "1", "trials": 1},
            }
        )
    )
    shape, chunk = plan.info.shape, plan.options.prefill_chunk
    loaded = loaded_model(plan)
    ids = torch.randint(1000, 40000, (args.tokens + args.decode,), generator=torch.Generator().manual_seed(0)).tolist()
    settings = [kv for kv in parse_kv(args.kv, shape.native_dtype) if runs(kv, plan)]
    # the first passes of a process are slow, whatever the format
    measure(loaded, shape, settings[0], ids[: 512 + args.decode], args.decode, chunk)
    print(
        f"{args.tokens:,} tokens in chunks of {chunk}, {args.decode} decode steps, {torch.get_num_threads()} threads, "
        f"{str(loaded.dtype).removeprefix('torch.')}; ratios are to {settings[0].name}"
    )
    print(f"{'KV':<24}{'prefill/s':>10}{'ratio':>7}{'decode/s':>10}{'ratio':>7}{'held':>12}{'formula':>12}{'copy':>11}")
    first: Measured | None = None
    for kv in settings:
        got = measure(loaded, shape, kv, ids, args.decode, chunk)
        first = first or got
        ratios = got.prefill_tokens_s / first.prefill_tokens_s, got.decode_tokens_s / first.decode_tokens_s
        print(
            f"{got.kv:<24}{got.prefill_tokens_s:>10,.0f}{ratios[0]:>7.2f}{got.decode_tokens_s:>10.1f}{ratios[1]:>7.2f}"
            f"{got.held_bytes:>12,}{got.formula_bytes:>12,}{got.copy_bytes:>11,}",
            flush=True,
        )
        if args.json:
            print(json.dumps(asdict(got)), flush=True)


if __name__ == "__main__":
    main()
