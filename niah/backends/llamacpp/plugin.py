"""llama.cpp in a process of its own: GGUF models, its block types for keys and values, KV bytes as it reports them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager

from niah.backends.llamacpp.cache_types import SUPPORT
from niah.backends.llamacpp.options import LlamaCppOptions
from niah.engines.base import BackendPlugin, ModelInfo, Session, SessionRequest, per_session
from niah.engines.checkpoint.gguf import is_alias
from niah.engines.checkpoint.gguf_describe import describe_gguf
from niah.kv.config import KVConfig
from niah.kv.formats import BLOCK_ELEMENTS, Block
from niah.models.shape import ModelShape
from niah.types import Host, Problem


def _describe(options: LlamaCppOptions, model: str) -> ModelInfo:
    return describe_gguf(model, template=options.template, date=options.date, swa_full=options.swa_full)


def _check(options: LlamaCppOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:
    found = [*_flash_attention(options, kv)]
    if options.threads is not None and options.threads > host.cores:
        reason = f"this machine has {host.cores} cores, and threads that wait for each other spin"
        found.append(Problem("backend.threads", str(options.threads), reason, "Use fewer, or leave it out."))
    return [*found, *_shape(kv, shape)] if shape is not None else found


def _flash_attention(options: LlamaCppOptions, kv: KVConfig) -> Iterator[Problem]:
    if isinstance(kv.values, Block) and not options.flash_attn:
        reason = "llama.cpp quantizes values only under flash attention, which backend.flash_attn switches off"
        yield Problem("kv", kv.name, reason, f"Drop that option, or use llama(k={kv.keys.element}).")


def _shape(kv: KVConfig, shape: ModelShape) -> Iterator[Problem]:
    if any(layer.kind == "linear" for layer in shape.layers):
        reason = "its linear-attention layers keep a state that is not counted here"
        yield Problem("model", shape.name, reason, "Use --backend vllm.")
    layers = [layer for layer in shape.layers if layer.stores_tokens]
    dims_of = {"keys": {layer.k_dim for layer in layers}, "values": {layer.v_dim for layer in layers}}
    for side, stored in kv.sides:
        if not isinstance(stored, Block):
            continue
        if shape.is_mla:
            yield Problem("kv", kv.name, "the model stores a latent, not K and V to quantize", "Use fp16.")
            return
        for dim in sorted(dim for dim in dims_of[side] if dim % BLOCK_ELEMENTS):
            reason = f"blocks of {BLOCK_ELEMENTS} do not divide the {side} of {dim} elements of {shape.name!r}"
            yield Problem("kv", kv.name, reason, "Use fp16 or bf16 for that side.")


def _session(
    options: LlamaCppOptions, info: ModelInfo, request: SessionRequest
) -> AbstractAsyncContextManager[Session]:
    from niah.backends.llamacpp.open import opened_session

    return opened_session(options, info, request)


PLUGIN = BackendPlugin(
    name="llamacpp",
    summary="GGUF models through llama.cpp: f16, q8_0, q5_1 … q4_0 for keys and values apart, bytes as it reports",
    options=LlamaCppOptions,
    describe=_describe,
    check=_check,
    support=lambda: SUPPORT,
    open=per_session(_session),
    default_model="smollm2",
    default_kv=("fp16", "q8_0", "q4_0"),
    requires=(("xllamacpp", "llamacpp"), ("transformers", "llamacpp"), ("torch", "llamacpp")),
    is_known_here=lambda _, model: is_alias(model),
)
