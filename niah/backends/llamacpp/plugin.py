"""llama.cpp in a process of its own: GGUF models, its block types for keys and values, KV bytes as it reports them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from niah.backends.llamacpp.cache_types import WORDS
from niah.backends.llamacpp.options import LlamaCppOptions
from niah.engines.base import BackendPlugin, Engine, ModelInfo, Session, SessionRequest
from niah.engines.checkpoint.gguf import is_alias
from niah.engines.checkpoint.gguf_describe import describe_gguf
from niah.kv.config import BLOCK_ELEMENTS, BLOCK_SCALE_BYTES, KVConfig
from niah.models.shape import ModelShape
from niah.types import Host, Problem


def _describe(options: LlamaCppOptions, model: str) -> ModelInfo:
    return describe_gguf(model, template=options.template, date=options.date, swa_full=options.swa_full)


def _check(options: LlamaCppOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:
    found = [*_types(options, kv), *_methods(kv)]
    if options.threads is not None and options.threads > host.cores:
        reason = f"this machine has {host.cores} cores, and threads that wait for each other spin"
        found.append(Problem("backend.threads", str(options.threads), reason, "Use fewer, or leave it out."))
    return [*found, *_shape(kv, shape)] if shape is not None else found


def _types(options: LlamaCppOptions, kv: KVConfig) -> Iterator[Problem]:
    for side, dtype in (("keys", kv.k_dtype), ("values", kv.v_dtype)):
        if dtype not in WORDS:
            hint = f"Types: {', '.join(name for name in WORDS if name != 'auto')}."
            yield Problem("kv", kv.name, f"llama.cpp stores no {side} as {dtype}", hint)
    if kv.v_dtype in BLOCK_SCALE_BYTES and not options.flash_attn:
        reason = "llama.cpp quantises values only under flash attention, which backend.flash_attn switches off"
        yield Problem("kv", kv.name, reason, f"Drop that option, or use llama(k={kv.k_dtype}).")


def _methods(kv: KVConfig) -> Iterator[Problem]:
    asked = {
        "window override (models keep their own; see backend.swa_full)": kv.window is not None or kv.sinks > 0,
        "KV-head merging": kv.kv_heads is not None,
        "compressive memory": kv.memory != "kv",
        "full-precision residual": kv.residual > 0,
        "parallelism over devices": kv.tp > 1 or kv.pp > 1 or kv.context_parallel > 1,
        "cache offload": kv.offload is not None,
        "rope scaling": kv.rope is not None,
        "skipped layers": bool(kv.skip_layers),
        "paging": kv.block_size is not None or kv.pool_bytes is not None,
        "prefill chunk in the setting (see backend.ubatch)": kv.prefill_chunk is not None,
        "engine-specific options": bool(kv.native),
    }
    for what, wanted in asked.items():
        if wanted:
            yield Problem("kv", kv.name, f"this backend has no {what}", "Drop that part of the setting.")


def _shape(kv: KVConfig, shape: ModelShape) -> Iterator[Problem]:
    if any(layer.kind == "linear" for layer in shape.layers):
        reason = "its linear-attention layers keep a state that is not counted here"
        yield Problem("model", shape.name, reason, "Use --backend vllm.")
    for side, dtype, dims in (
        ("keys", kv.k_dtype, {layer.k_dim for layer in shape.layers if layer.stores_tokens}),
        ("values", kv.v_dtype, {layer.v_dim for layer in shape.layers if layer.stores_tokens}),
    ):
        if dtype not in BLOCK_SCALE_BYTES:
            continue
        if shape.is_mla:
            yield Problem("kv", kv.name, "the model stores a latent, not K and V to quantise", "Use fp16.")
            return
        for dim in sorted(dim for dim in dims if dim % BLOCK_ELEMENTS):
            reason = f"blocks of {BLOCK_ELEMENTS} do not divide the {side} of {dim} elements of {shape.name!r}"
            yield Problem("kv", kv.name, reason, "Use fp16 or bf16 for that side.")


class _Engine:
    def __init__(self, options: LlamaCppOptions, info: ModelInfo) -> None:
        self._options, self._info = options, info

    def session(self, request: SessionRequest) -> AbstractAsyncContextManager[Session]:
        from niah.backends.llamacpp.open import opened_session

        return opened_session(self._options, self._info, request)


@asynccontextmanager
async def _open(options: LlamaCppOptions, info: ModelInfo) -> AsyncIterator[Engine]:
    # the KV types are arguments of the engine's context, so each setting has a process of its own
    yield _Engine(options, info)


PLUGIN = BackendPlugin(
    name="llamacpp",
    summary="GGUF models through llama.cpp: f16, q8_0, q5_1 … q4_0 for keys and values apart, bytes as it reports",
    options=LlamaCppOptions,
    describe=_describe,
    check=_check,
    open=_open,
    default_model="smollm2",
    default_kv=("fp16", "q8_0", "q4_0"),
    requires=(("xllamacpp", "llamacpp"), ("transformers", "llamacpp"), ("torch", "llamacpp")),
    is_known_here=lambda _, model: is_alias(model),
)
