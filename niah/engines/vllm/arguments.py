"""Translates a KV setting to vLLM engine arguments, for the engine in this process and for the server's flags.

Names are those of vLLM 0.32's ``EngineArgs`` (``engine/arg_utils.py``); the server's flags are the same with hyphens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from niah.engines.base import QUIET, BackendOptions, Day, ModelInfo, SessionRequest
from niah.engines.checkpoint.describe import describe_model
from niah.engines.checkpoint.yarn import stretched
from niah.engines.support import Support
from niah.errors import BackendUnavailable
from niah.kv.config import KVConfig
from niah.kv.formats import TokenHead
from niah.kv.memory.totals import GIB
from niah.kv.vllm_formats import TurboQuant
from niah.models.shape import ModelShape

# element and layout, equal for K and V -> vLLM's kv_cache_dtype
WORDS: Mapping[tuple[str, str], str] = {
    ("auto", "none"): "auto",
    ("bf16", "none"): "bfloat16",
    ("fp16", "none"): "float16",
    ("fp8_e4m3", "unit_scale"): "fp8_e4m3",
    ("fp8_e4m3", "checkpoint_scale"): "fp8_e4m3",
    ("fp8_e5m2", "unit_scale"): "fp8_e5m2",
    ("fp8_e5m2", "checkpoint_scale"): "fp8_e5m2",
    ("fp8_e4m3", "token_head"): "fp8_per_token_head",
    ("int8", "token_head"): "int8_per_token_head",
    ("int4", "group_token"): "int4_per_token_head",
    ("nvfp4", "nvfp4"): "nvfp4",
}
# keys and values that differ
MIXED_WORDS: Mapping[tuple[tuple[str, str], tuple[str, str]], str] = {
    (("int8", "token_head"), ("int4", "group_token")): "turboquant_k8v4"
}
TURBOQUANT = frozenset(
    pair
    for keys, values in (("fp8_e4m3", "int4"), ("int4", "int4"), ("int3", "int4"), ("int3", "int3"))
    for pair in ((keys, "turboquant_keys"), (values, "turboquant_values"))
)
SUPPORT = Support(
    formats=frozenset(WORDS) | frozenset(pair for pairs in MIXED_WORDS for pair in pairs) | TURBOQUANT,
    aspects=frozenset(
        {
            *("skip_layers", "window", "context_parallel", "tensor_parallel", "pipeline_parallel"),
            *("paging", "offload", "native"),
        }
    ),
)
# vLLM's kv_cache_dtype -> niah's element type
ELEMENTS: Mapping[str, str] = {word: element for (element, _), word in WORDS.items()}
# niah's compute dtype -> vLLM's
DTYPES: Mapping[str, str] = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
# native option that names vLLM's kv_cache_dtype
NATIVE_WORD = "kv-cache-dtype"
# contexts of the longest kind that the pool has room for on a CPU; vLLM on a CPU would otherwise take most of the RAM
POOL_CONTEXTS = 4
POOL_FLOOR_BYTES = 256 << 20
# layers below which TurboQuant has no edges to keep
TURBOQUANT_EDGES = 4
_WINDOW_CHUNK_CPU, _WINDOW_CHUNK_GPU = 512, 2048
# contexts of the longest kind that the host keeps when blocks are offloaded
_OFFLOADED_CONTEXTS = 8


class VllmEngineOptions(BackendOptions):
    """Options of an engine, wherever it runs.

    Attributes:
        dtype: compute type where the KV setting leaves it open (``auto``); bf16 and fp16 settings bring their own.
        template: ``auto`` uses the model's chat template where it has one, else plain completion.
        date: ISO day that a chat template prints which prints one; None is the same day in every run.
        pool_bytes: KV pool; None is enough for a few of the longest prompts on a CPU, and vLLM's own share of a GPU.
        block_size: tokens per block; None leaves it to vLLM (128 on a CPU).
        max_num_batched_tokens: tokens per engine step, which is the prefill chunk; None leaves it to vLLM, but for
            models with windows, where it is as long as a window and at least 512 (2,048 on a GPU).
        max_num_seqs: requests that the engine runs at a time.
        hybrid_manager: give window layers only the blocks of their window; False gives them full-length ones.
        enforce_eager: no graph capture or compilation.
        threads: CPU threads; None is what ``OMP_NUM_THREADS`` says, else the cores of this process.
        logprobs: score the expected answer, from the cached prefix.
        skip_checks: skip the check of what this machine can run; the canary still looks.
        context_parallel: which kind a setting's context parallelism is: of the stored tokens while decoding, or of
            the prompt (MLA models only).
        yarn_factor: stretch the positions by YaRN (arXiv:2309.00071) to this many times the model's context, in every
            setting and the reference alike.
        trust_remote_code: run code that a model's repository brings along.
    """

    dtype: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    template: Literal["auto", "chat", "completion"] = "auto"
    date: Day | None = Field(default=None, json_schema_extra=QUIET)
    pool_bytes: int | None = Field(default=None, ge=1 << 20, json_schema_extra=QUIET)
    block_size: int | None = Field(default=None, ge=1)
    max_num_batched_tokens: int | None = Field(default=None, ge=1)
    max_num_seqs: int = Field(default=16, ge=1)
    hybrid_manager: bool = True
    enforce_eager: bool = True
    threads: int | None = Field(default=None, ge=1, json_schema_extra=QUIET)
    logprobs: bool = True
    skip_checks: bool = Field(default=False, json_schema_extra=QUIET | {"formerly": "trust_me"})
    context_parallel: Literal["decode", "prefill"] = "decode"
    yarn_factor: float | None = Field(default=None, gt=1)
    trust_remote_code: bool = False
    revision: str | None = None


def describe_for_engine(options: VllmEngineOptions, model: str) -> ModelInfo:
    """``ModelInfo`` for a plan, its context extended where ``yarn_factor`` is set."""
    info = describe_model(
        model,
        template=options.template,
        date=options.date,
        trust_remote_code=options.trust_remote_code,
        revision=options.revision,
    )
    return info if options.yarn_factor is None else stretched(info, options.yarn_factor)


def cache_dtype_name(kv: KVConfig, *, on_cpu: bool = False) -> str:
    """vLLM's ``kv_cache_dtype`` for a setting; niah's name where vLLM has none, so that the error message names it."""
    named = dict(kv.native).get(NATIVE_WORD)
    if named is not None:
        return named
    # the CPU kernels list no 16-bit names: there the cache is the model's own type, which is set instead
    if on_cpu and kv.keys.element in DTYPES:
        return "auto"
    if kv.keys.pair != kv.values.pair:
        return MIXED_WORDS.get((kv.keys.pair, kv.values.pair), f"{kv.keys.label}+{kv.values.label}")
    return WORDS.get(kv.keys.pair, kv.keys.label)


def stored_as(kv: KVConfig, shape: ModelShape | None) -> KVConfig:
    """The setting as vLLM stores it, for the memory formula, where vLLM's format of that name differs from niah's.

    Sources: kv-cache layouts of vLLM 0.32, ``v1/kv_cache_interface.py`` and ``quantization/turboquant/config.py``.
    """
    word = cache_dtype_name(kv)
    if word == "int4_per_token_head":
        # rotation and zero point are packed into the 4 bytes of the scale
        return replace(kv, keys=TokenHead("int4"), values=TokenHead("int4"))
    if word == "turboquant_k8v4":
        kv = replace(kv, keys=TurboQuant("fp8_e4m3", "keys"), values=TurboQuant("int4", "values"))
    return _turboquant(kv, shape) if word.startswith("turboquant_") else kv


def _turboquant(kv: KVConfig, shape: ModelShape | None) -> KVConfig:
    """Dense models keep the first and the last two layers in 16 bit, which vLLM adds by itself."""
    count = len(shape.layers) if shape is not None else 0
    edges = {0, 1, count - 2, count - 1} if count >= TURBOQUANT_EDGES else set()
    skipped = tuple(sorted(edges | {layer for layer in _absolute(kv, shape) if isinstance(layer, int)}))
    return replace(kv, skip_layers=skipped)


def compute_dtype(options: VllmEngineOptions, kv: KVConfig) -> str:
    """vLLM's name of the compute type: a 16-bit cache setting brings its own."""
    if kv.keys.element in DTYPES:
        return DTYPES[kv.keys.element]
    return DTYPES["bf16" if options.dtype == "auto" else options.dtype]


def engine_settings(
    options: VllmEngineOptions, info: ModelInfo, request: SessionRequest, *, on_cpu: bool
) -> dict[str, Any]:
    """Engine arguments of one KV setting by their ``EngineArgs`` names; vLLM's own defaults are left out."""
    kv, word = request.kv, cache_dtype_name(request.kv, on_cpu=on_cpu)
    default_pool = cpu_pool_bytes(info, request) if on_cpu else None
    values: dict[str, Any] = {
        "model": info.source,
        "dtype": compute_dtype(options, kv),
        "kv_cache_dtype": word,
        "max_model_len": min(request.max_length + 1, info.context_tokens or 1 << 30),
        "enable_prefix_caching": request.reuse,
        "max_num_seqs": options.max_num_seqs,
        "enforce_eager": options.enforce_eager or None,
        "trust_remote_code": options.trust_remote_code or None,
        "seed": 0,
        "kv_cache_memory_bytes": options.pool_bytes or default_pool,
        "block_size": kv.placement.block_size or options.block_size,
        "max_num_batched_tokens": options.max_num_batched_tokens or _window_chunk(kv, info, on_cpu=on_cpu),
        "revision": options.revision,
        "disable_hybrid_kv_cache_manager": None if options.hybrid_manager else True,
        "kv_cache_dtype_skip_layers": [str(layer) for layer in _absolute(kv, info.shape)] or None,
        "hf_overrides": _overrides(options, kv, info) or None,
        # only Triton's kernels read a cache with a scale per token and head
        "attention_backend": "TRITON_ATTN" if word.endswith("per_token_head") and not on_cpu else None,
        **_parallel(options, kv, info.shape),
        **_offload(kv, info, request),
    }
    values |= {name.replace("-", "_"): value for name, value in kv.native if name != NATIVE_WORD}
    return {name: value for name, value in values.items() if value is not None}


def _window_chunk(kv: KVConfig, info: ModelInfo, *, on_cpu: bool) -> int | None:
    """Prefill chunk where layers have a window; None elsewhere, which leaves it to vLLM.

    A window layer holds its window and the current chunk (vLLM 0.32, ``SlidingWindowSpec``). With vLLM's own chunk of
    some thousand tokens that would be whole prompts, and no memory saved at the peak.
    """
    windows = [layer.window for layer in info.shape.layers if layer.window] if info.shape is not None else []
    windows += [kv.window.size] if kv.window is not None else []
    if not windows:
        return None
    return max(_WINDOW_CHUNK_CPU if on_cpu else _WINDOW_CHUNK_GPU, *windows)


def ranks(options: VllmEngineOptions, kv: KVConfig, shape: ModelShape | None) -> tuple[int, int]:
    """(tensor-parallel, prefill-context-parallel) ranks.

    Decode context parallelism splits what tensor parallelism would replicate, so it takes as many tensor-parallel
    ranks as KV heads for each of its own (vLLM 0.32, ``config/model.py``); a latent counts as one head.
    """
    if kv.placement.context_parallel == 1:
        return kv.placement.tensor_parallel, 1
    if options.context_parallel == "prefill":
        return kv.placement.tensor_parallel, kv.placement.context_parallel
    heads = 1 if shape is None or shape.is_mla else max(layer.kv_heads for layer in shape.layers)
    return max(kv.placement.tensor_parallel, kv.placement.context_parallel * heads), 1


def _parallel(options: VllmEngineOptions, kv: KVConfig, shape: ModelShape | None) -> dict[str, Any]:
    tensor, prefill = ranks(options, kv, shape)
    decode = kv.placement.context_parallel if prefill == 1 else 1
    return {
        "tensor_parallel_size": tensor if tensor > 1 else None,
        "pipeline_parallel_size": kv.placement.pipeline_parallel if kv.placement.pipeline_parallel > 1 else None,
        "decode_context_parallel_size": decode if decode > 1 else None,
        "prefill_context_parallel_size": prefill if prefill > 1 else None,
    }


def _offload(kv: KVConfig, info: ModelInfo, request: SessionRequest) -> dict[str, Any]:
    if kv.placement.offload is None:
        return {}
    context = (_token_bytes(info.shape) if info.shape else 1 << 20) * (request.max_length + 256)
    size_gib = max(1.0, _OFFLOADED_CONTEXTS * context / GIB)
    backend = "lmcache" if kv.placement.offload == "lmcache" else "native"
    return {"kv_offloading_size": round(size_gib, 1), "kv_offloading_backend": backend}


def _absolute(kv: KVConfig, shape: ModelShape | None) -> list[int | str]:
    """Skipped layers with negative numbers counted from the end, as vLLM takes only real indices."""
    count = len(shape.layers) if shape is not None else 0
    return [layer + count if isinstance(layer, int) and layer < 0 else layer for layer in kv.skip_layers]


def _overrides(options: VllmEngineOptions, kv: KVConfig, info: ModelInfo) -> dict[str, Any]:
    """Changes to the model's config: a window on every layer, and positions stretched beyond the trained context."""
    values: dict[str, Any] = {}
    if kv.window is not None and info.shape is not None:
        # layer_types decides where it is there; a model without it reads it too (vLLM models/llama.py)
        kinds = ["sliding_attention"] * len(info.shape.layers)
        values |= {"sliding_window": kv.window.size, "use_sliding_window": True, "layer_types": kinds}
    if options.yarn_factor is not None and info.context_tokens is not None:
        yarn = {
            "rope_type": "yarn",
            "factor": options.yarn_factor,
            "original_max_position_embeddings": round(info.context_tokens / options.yarn_factor),
        }
        # vLLM takes max_position_embeddings as already scaled
        values |= {"rope_parameters": _rope(options, info) | yarn, "max_position_embeddings": info.context_tokens}
    own = info.shape.stretch if info.shape is not None else None
    if own is not None and own.kind == "yarn" and info.context_tokens is not None and own.stated < info.context_tokens:
        # the file states the length before its own stretching
        values["max_position_embeddings"] = info.context_tokens
    return values


def _rope(options: VllmEngineOptions, info: ModelInfo) -> dict[str, Any]:
    """The model's own rotary parameters, its base among them, which an override would drop."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(
        info.source, revision=options.revision, trust_remote_code=options.trust_remote_code
    )
    return dict(getattr(config.get_text_config(), "rope_parameters", None) or {})


def _token_bytes(shape: ModelShape) -> int:
    """Bytes of one token in a cache of 4-byte elements: more than any setting takes, padding included."""
    return sum(layer.latent or layer.elements for layer in shape.layers) * 4


def cpu_pool_bytes(info: ModelInfo, request: SessionRequest) -> int:
    """Pool on a CPU: room for a few of the longest contexts in 32 bit."""
    if info.shape is None:
        return POOL_FLOOR_BYTES
    return max(POOL_FLOOR_BYTES, POOL_CONTEXTS * _token_bytes(info.shape) * (request.max_length + 256))


def as_keywords(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of ``vllm.LLM``."""
    values = dict(settings)
    attention = values.pop("attention_backend", None)
    if attention is not None:
        values["attention_config"] = {"backend": attention}
    return values


def as_flags(settings: Mapping[str, Any]) -> list[str]:
    """The server's command-line flags."""
    flags: list[str] = []
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        if value is False:
            flags.append(f"--no-{flag[2:]}")
        elif value is True:
            flags.append(flag)
        elif isinstance(value, dict):
            flags += [flag, json.dumps(value)]
        elif isinstance(value, list):
            flags += [flag, *map(str, value)]
        else:
            flags += [flag, str(value)]
    return flags


def check_windows(kv: KVConfig, windows: list[int | None], name: str) -> None:
    """Compare the windows of the engine's layer groups with the requested one.

    A model's code may ignore an override and keep full-length caches without an error.

    Args:
        windows: window of each group of layers, in tokens; None for full attention.

    Raises:
        BackendUnavailable: some group has another window.
    """
    if kv.window is None or (windows and all(window == kv.window.size for window in windows)):
        return
    found = ", ".join("full attention" if window is None else f"{window} tokens" for window in windows) or "no layers"
    raise BackendUnavailable(
        f"kv {kv.name!r} asks vLLM for a window of {kv.window.size} tokens and the engine has {found} for {name!r}: "
        "this model's code does not follow the override. Use --backend transformers."
    )
