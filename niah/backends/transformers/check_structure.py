"""Checks before loading of windows, sinks, merged heads, memories, rings and offloading on the transformers backend."""

from __future__ import annotations

from collections.abc import Iterator

from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.types import Host, Problem

# families whose keys are rotated as a whole in every layer: a contract test holds this list and the code's together
ROTATABLE = frozenset({"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma3_text", "olmo2"})
# keys and values come out of one projection together with the queries
_FUSED = frozenset({"bloom", "dbrx", "falcon", "gpt2", "gpt_bigcode", "gpt_neox", "mpt", "phi3"})


def structure_problems(kv: KVConfig, shape: ModelShape | None, host: Host, *, on_cpu: bool) -> list[Problem]:
    """Reasons why a setting that changes what is kept, or where, cannot run; pure, without importing an engine."""
    found = [*_combined(kv), *_offload(kv, on_cpu=on_cpu)]
    if kv.placement.context_parallel > 1:
        found += _ring(kv, shape, host, on_cpu=on_cpu)
    if shape is not None:
        found += [*_window(kv, shape), *_merging(kv, shape), *_infini(kv, shape)]
    return found


def layer_problems(shape: ModelShape) -> Iterator[Problem]:
    """Layers of a model that have no cache layer here: only keys and values of tokens can be stored and measured."""
    kinds = {layer.kind for layer in shape.layers}
    hint = "Use a model whose layers all keep keys and values of tokens."
    if "linear" in kinds:
        reason = "some layers keep a state (linear attention, recurrence, convolution), which questions cannot share"
        yield Problem("model", shape.name, reason, hint)
    if "cross" in kinds:
        yield Problem("model", shape.name, "some layers attend to an image, and have no cache layer here", hint)
    if "none" in kinds:
        yield Problem("model", shape.name, "some layers have no attention, which the cache here does not support", hint)
    if "chunked" in kinds:
        yield Problem("model", shape.name, "chunked-attention layers have no cache layer here yet", hint)
    stored = [layer.kind != "shared" for layer in shape.layers]
    # the library's own caches have that form; another needs the model's own code
    if sorted(stored, reverse=True) != stored:
        yield Problem("model", shape.name, "layers that share a cache are not the last ones", hint)


def _combined(kv: KVConfig) -> Iterator[Problem]:
    ways = {
        "a window": kv.window is not None,
        "a compressive memory": kv.memory is not None,
        "a ring": kv.placement.context_parallel > 1,
        "offloading": kv.placement.offload is not None,
    }
    asked = [way for way, wanted in ways.items() if wanted]
    if len(asked) > 1:
        reason = f"{' and '.join(asked)} each decide what is kept where, so they exclude each other"
        yield Problem("kv", kv.name, reason, "Choose one of them.")
    if asked and not kv.keys.tokens_stand_alone:
        reason = f"{asked[0]} needs a format whose tokens stand alone, and this one packs many together"
        yield Problem("kv", kv.name, reason, "Use int8, k8v4 or int4 in its place.")


def _window(kv: KVConfig, shape: ModelShape) -> Iterator[Problem]:
    if kv.window is None or not kv.window.sinks or kv.window.positions != "in_cache":
        return
    if shape.is_mla or (shape.model_type and shape.model_type not in ROTATABLE):
        reason = f"positions inside the cache need rotary keys that can be moved; {_kind(shape)} is not among those"
        yield Problem("kv", kv.name, reason, "Use streaming(…,positions=original), or window(512).")


def _kind(shape: ModelShape) -> str:
    return f"the model type {shape.model_type!r}" if shape.model_type else f"{shape.name!r}"


def _merging(kv: KVConfig, shape: ModelShape) -> Iterator[Problem]:
    if kv.kv_heads is None:
        return
    if shape.is_mla:
        yield Problem("kv", kv.name, "the model stores one latent for all heads, so no KV heads can be merged")
        return
    if shape.model_type in _FUSED:
        reason = f"{_kind(shape)} projects queries, keys and values in one layer, so its KV heads are not merged here"
        yield Problem("kv", kv.name, reason, "Use a model with separate projections, such as Llama or Qwen.")
    for heads in shape.kv_heads:
        if heads % kv.kv_heads:
            divisors = ", ".join(str(n) for n in range(1, heads + 1) if heads % n == 0)
            reason = f"{heads} KV heads cannot be merged to {kv.kv_heads}"
            yield Problem("kv", kv.name, reason, f"Divisors of {heads}: {divisors}.")


def _infini(kv: KVConfig, shape: ModelShape) -> Iterator[Problem]:
    if kv.memory is None:
        return
    if shape.is_mla or (shape.model_type and shape.model_type not in ROTATABLE):
        reason = f"a compressive memory needs keys without their rotation; {_kind(shape)} is not known to allow that"
        yield Problem("kv", kv.name, reason, f"Known: {', '.join(sorted(ROTATABLE))}.")
    windows = sorted({layer.window for layer in shape.layers if layer.window is not None})
    if windows:
        reason = f"layers with a window of {windows[0]:,} tokens have a local memory of their own already"
        yield Problem("kv", kv.name, reason, "Use a model with full attention in every layer.")


def _ring(kv: KVConfig, shape: ModelShape | None, host: Host, *, on_cpu: bool) -> Iterator[Problem]:
    ranks = kv.placement.context_parallel
    if kv.is_quantized:
        yield Problem("kv", kv.name, "a ring passes blocks in 16 bit and supports no quantized format", "Use ring(2).")
    if on_cpu and ranks > host.cores:
        reason = f"{ranks} ranks on {host.cores} core{'s' if host.cores > 1 else ''} would wait for each other"
        hint = f"Use at most {host.cores} ranks, or --set backend.oversubscribe=true."
        yield Problem("backend.oversubscribe", kv.name, reason, hint)
    if shape is None:
        return
    if shape.is_mla:
        yield Problem("kv", kv.name, "the model stores a latent, which a ring does not support", "Use bf16.")
    windows = sorted({layer.window for layer in shape.layers if layer.window is not None})
    if windows:
        reason = f"layers with a window of {windows[0]:,} tokens leave nothing to spread over {ranks} ranks"
        yield Problem("kv", kv.name, reason, "Use a model with full attention in every layer.")


def _offload(kv: KVConfig, *, on_cpu: bool) -> Iterator[Problem]:
    if kv.placement.offload is None:
        return
    if kv.placement.offload != "cpu":
        yield Problem(
            "kv", kv.name, f"there is no place named {kv.placement.offload!r} to keep a cache", "Use offload."
        )
    elif on_cpu:
        reason = "the model runs on the CPU, so its cache is in host memory already"
        yield Problem("kv", kv.name, reason, "Use bf16, or a machine with a GPU.")
