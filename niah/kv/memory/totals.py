"""KV-cache bytes by formula: what a model's real shape needs in each format, beside the textbook formula.

T is the number of tokens whose K and V are stored. Per layer, for one sequence:

=====================  =============================================================================
16 bit                 ``kv_heads · (k_dim + v_dim) · T · 2``; MLA ``(kv_lora_rank + rope dims) · T · 2``
window, chunked        the same with ``min(T, W)``; sinks and window: ``min(T, sinks + window)``
per token and head     one 4-byte scale beside each key and each value (vLLM's ``int8_per_token_head``)
groups along head_dim  fp16 scale (and fp16 zero point) per group
llama.cpp blocks       34, 24, 22, 20, 18, 18 B per 32 elements: q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl
KIVI                   arXiv:2402.02750: keys per channel in groups of tokens, values per token, 16-bit residual
Infini-attention       arXiv:2404.07143: ``(k_dim · v_dim + k_dim) · 4`` per head, and one local segment
linear, shared         a constant state; nothing
quanto, hqq            as the packages pack it (``_library``)
TurboQuant             keys 2 bytes, values 4 bytes of scales per token and head; none beside fp8 keys (vLLM 0.32)
=====================  =============================================================================

All figures are logical bytes: no padding, pages (but ``paged_bytes``) or reserved pools, and totals over all devices.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

from niah.errors import ConfigError
from niah.kv.config import BLOCK_ELEMENTS, BLOCK_SCALE_BYTES, ELEMENT_BITS, KVConfig, is_quantised
from niah.kv.memory.library import LIBRARIES, library_bytes
from niah.models.shape import LayerShape, ModelShape

KIB, MIB, GIB, TIB = 1024, 1024**2, 1024**3, 1024**4
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB}
SIXTEEN_BIT_BYTES = 2
_TOKEN_HEAD_SCALE_BYTES = 4
_FP16_BYTES = 2
_FP32_BYTES = 4
_NVFP4_GROUP = 16
# what a layer in 16 bit has of a quantised setting
_PLAIN: dict[str, Any] = {"granularity": "none", "group_size": None, "symmetric": True, "scales": "dynamic"}
_PLAIN |= {"residual": 0, "skip_layers": ()}
_GRANULARITIES = ("none", "tensor", "token_head", "group_token", "block", "kivi", "turboquant", *LIBRARIES)
REFERENCE = KVConfig("reference")


def parse_bytes(text: str) -> int:
    """Bytes of ``80GiB`` (binary), ``24GB`` (decimal) or a plain number of bytes.

    Raises:
        ConfigError: not a positive number with one of these units.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    factor = _UNITS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise ConfigError(f"{text!r} is not an amount of memory; write for instance 80GiB, 24GB or 512MiB.")
    amount = int(Fraction(match[1]) * factor)
    if amount < 1:
        raise ConfigError(f"{text!r} is no memory at all; write for instance 80GiB.")
    return amount


def human_bytes(amount: int) -> str:
    """Bytes for people, in binary units: ``1.25 GiB``."""
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if amount >= unit:
            return f"{amount / unit:.2f} {name}"
    return f"{amount} B"


def human_gb(amount: int) -> str:
    """Bytes for people, in decimal units as articles and data sheets have them: ``343.6 GB``."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if amount >= unit:
            return f"{amount / unit:.1f} {name}"
    return f"{amount} B"


def stored_tokens(prompt_tokens: int, output_tokens: int) -> int:
    """Tokens with stored K and V at the end: the last generated one has none yet."""
    return prompt_tokens + max(0, output_tokens - 1)


def kv_bytes(shape: ModelShape, kv: KVConfig, tokens: int, batch: int = 1) -> int:
    """Exact bytes of the cache of ``batch`` sequences with ``tokens`` stored tokens each.

    Raises:
        ConfigError: the setting does not go with the model's shape, or has no formula.
    """
    _check_amounts(tokens, batch)
    check_setting(shape, kv)
    total = 0
    for index, layer in enumerate(shape.layers):
        total += _layer_bytes(layer, setting_of_layer(shape, kv, index), tokens)
    return total * batch


def paged_bytes(shape: ModelShape, kv: KVConfig, tokens: int, batch: int = 1) -> int:
    """As ``kv_bytes``, with the unfilled slots of each sequence's last block where the setting has blocks.

    A window layer is counted by its window: how many blocks an engine holds for one depends on its chunks.

    Raises:
        ConfigError: as ``kv_bytes``.
    """
    _check_amounts(tokens, batch)
    block = kv.block_size or 1
    return kv_bytes(shape, kv, -(-tokens // block) * block, batch)


def reference_bytes(shape: ModelShape, tokens: int, batch: int = 1) -> int:
    """Bytes of the model's own 16-bit cache."""
    return kv_bytes(shape, REFERENCE, tokens, batch)


def naive_mha_bytes(shape: ModelShape, tokens: int, batch: int = 1) -> int:
    """The textbook formula ``2 · layers · hidden_size · T · 2``, which knows no shared heads, windows or latents."""
    _check_amounts(tokens, batch)
    return 2 * len(shape.layers) * shape.hidden_size * tokens * SIXTEEN_BIT_BYTES * batch


def weights_bytes(shape: ModelShape) -> int | None:
    """Bytes of the weights at the checkpoint's own precision, else in 16 bit; None when the count is not known."""
    if shape.stored_weight_bytes is not None:
        return shape.stored_weight_bytes
    return None if shape.parameters is None else shape.parameters * SIXTEEN_BIT_BYTES


def fits(weights: int | None, cache: int, gpu_bytes: int | None) -> bool | None:
    """Whether weights and cache fit; None when that cannot be said. Activations are not counted."""
    if gpu_bytes is None:
        return None
    if cache > gpu_bytes:
        return False
    return None if weights is None else weights + cache <= gpu_bytes


def check_setting(shape: ModelShape, kv: KVConfig) -> None:
    """Refuse a setting that this model's cache cannot have.

    Raises:
        ConfigError: an unknown type, groups that do not divide the head size, sinks without a window, heads that
            cannot be merged, layers that are not there, or a quantised latent.
    """
    for dtype in (kv.k_dtype, kv.v_dtype):
        if dtype != "auto" and dtype not in ELEMENT_BITS:
            raise ConfigError(f"{kv.name}: no memory formula for the type {dtype!r}; known: {', '.join(ELEMENT_BITS)}.")
    if kv.granularity not in _GRANULARITIES:
        known = ", ".join(_GRANULARITIES)
        raise ConfigError(f"{kv.name}: no memory formula for the granularity {kv.granularity!r}; known: {known}.")
    if kv.sinks and kv.window is None:
        raise ConfigError(f"{kv.name}: {kv.sinks} sinks need a window beside them; add window=512 or drop the sinks.")
    if kv.memory not in ("kv", "infini") or (kv.memory == "infini" and kv.segment is None):
        raise ConfigError(f"{kv.name}: memory {kv.memory!r} must be kv, or infini together with a segment length.")
    count = len(shape.layers)
    for skip in kv.skip_layers:
        if isinstance(skip, str) and skip != "sliding_window":
            raise ConfigError(f"{kv.name}: skip_layers {skip!r} is neither a layer number nor 'sliding_window'.")
        if isinstance(skip, int) and not -count <= skip < count:
            raise ConfigError(f"{kv.name}: skip_layers {skip}, but {shape.name!r} has layers 0 to {count - 1}.")
    for index, layer in enumerate(shape.layers):
        if layer.stores_tokens:
            _check_layer(shape, layer, setting_of_layer(shape, kv, index))


def _check_layer(shape: ModelShape, layer: LayerShape, kv: KVConfig) -> None:
    quantised = is_quantised(kv)
    if layer.latent and (quantised or kv.kv_heads is not None or kv.memory != "kv"):
        raise ConfigError(
            f"{kv.name}: {shape.name!r} stores an MLA latent of {layer.latent} elements per token, so there is no K/V "
            "to quantise or merge; use bf16."
        )
    if kv.kv_heads is not None and (kv.kv_heads < 1 or layer.kv_heads % kv.kv_heads):
        raise ConfigError(
            f"{kv.name}: {layer.kv_heads} KV heads of {shape.name!r} cannot be merged to {kv.kv_heads}; "
            f"give a divisor of {layer.kv_heads}."
        )
    if not quantised:
        return
    for side, dtype, dim in (("keys", kv.k_dtype, layer.k_dim), ("values", kv.v_dtype, layer.v_dim)):
        group = _group(kv, dtype, dim, side)
        if group is not None and dim % group:
            raise ConfigError(
                f"{kv.name}: groups of {group} do not fit the {side} of {shape.name!r}, whose heads have {dim} "
                f"elements ({dim} = {dim // group} × {group} + {dim % group}); use a group_size that divides {dim}."
            )
        if dim * bits_of(dtype) % 8:
            raise ConfigError(
                f"{kv.name}: {dim} elements of {bits_of(dtype)} bits do not fill whole bytes; use an 8-bit format."
            )
    if kv.granularity == "kivi" and layer.window is not None:
        raise ConfigError(
            f"{kv.name}: KIVI quantises keys {kv.group_size} tokens at a time, and the window layers of {shape.name!r} "
            f"drop them one at a time; use {kv.name}+skip(sliding_window) or int4."
        )
    if kv.granularity == "kivi" and (kv.residual < 1 or kv.residual % (kv.group_size or kv.residual)):
        raise ConfigError(
            f"{kv.name}: KIVI quantises keys {kv.group_size} tokens at a time, so the residual {kv.residual} must be "
            "a positive multiple of that; use residual=128."
        )


def _check_amounts(tokens: int, batch: int) -> None:
    if tokens < 0 or batch < 1:
        raise ConfigError(
            f"{tokens} tokens in a batch of {batch} is no cache; give at least 0 tokens and a batch of 1."
        )


def bits_of(dtype: str) -> int:
    return 16 if dtype == "auto" else ELEMENT_BITS[dtype]


def setting_of_layer(shape: ModelShape, kv: KVConfig, index: int) -> KVConfig:
    """The setting of one layer: in the model's own 16-bit type where the layer is skipped, and without a list of them.

    What skipped layers keep is the type, not the tokens.
    """
    if not _is_skipped(shape, kv, index):
        return replace(kv, skip_layers=()) if kv.skip_layers else kv
    own = shape.native_dtype
    return replace(kv, k_dtype=own, v_dtype=own, **_PLAIN)


def _is_skipped(shape: ModelShape, kv: KVConfig, index: int) -> bool:
    if index in kv.skip_layers or index - len(shape.layers) in kv.skip_layers:
        return True
    return "sliding_window" in kv.skip_layers and shape.layers[index].kind in ("window", "chunked")


def _group(kv: KVConfig, dtype: str, dim: int, side: str) -> int | None:
    """Elements along head_dim that share a scale; None where nothing does.

    In a mixed setting such as K8V4 only the narrow side is grouped: the 8-bit one has a scale per token and head.
    """
    if dtype in BLOCK_SCALE_BYTES:
        return BLOCK_ELEMENTS
    if bits_of(dtype) >= 16 or (kv.granularity == "kivi" and side == "keys"):
        return None
    if kv.granularity in ("group_token", *LIBRARIES) and (bits_of(dtype) < 8 or kv.k_dtype == kv.v_dtype):
        return kv.group_size or (_NVFP4_GROUP if dtype == "nvfp4" else dim)
    return (kv.group_size or dim) if kv.granularity == "kivi" else None


def token_bytes(kv: KVConfig, dtype: str, dim: int, side: str) -> tuple[int, int]:
    """(payload, scales) of one key or value."""
    payload = dim * bits_of(dtype) // 8
    if bits_of(dtype) >= 16:
        return payload, 0
    if kv.granularity == "turboquant":
        return payload, 0 if bits_of(dtype) == 8 else _FP16_BYTES if side == "keys" else 2 * _FP16_BYTES
    group = _group(kv, dtype, dim, side)
    if group is not None:
        if dtype in BLOCK_SCALE_BYTES:
            return payload, dim // group * BLOCK_SCALE_BYTES[dtype]
        if dtype == "nvfp4":
            return payload, dim // group
        # KIVI keeps a scale and a minimum in every case
        parts = 1 if kv.symmetric and kv.granularity != "kivi" else 2
        return payload, dim // group * parts * _FP16_BYTES
    dynamic = kv.granularity in ("token_head", "group_token") and kv.scales == "dynamic"
    return payload, _TOKEN_HEAD_SCALE_BYTES if dynamic else 0


def _layer_bytes(layer: LayerShape, kv: KVConfig, tokens: int) -> int:
    if not layer.stores_tokens:
        return layer.state_bytes
    heads = kv.kv_heads or layer.kv_heads
    if kv.memory == "infini":
        memory = (layer.k_dim * layer.v_dim + layer.k_dim) * _FP32_BYTES
        return heads * (memory + _head_bytes(layer, kv, min(tokens, kv.segment or 0)))
    kept = min([tokens, *token_limits(layer, kv)])
    if kv.granularity in LIBRARIES:
        sides = ((kv.k_dtype, layer.k_dim), (kv.v_dtype, layer.v_dim))
        return sum(library_bytes(kv, bits_of(dtype), heads * dim, kept) for dtype, dim in sides)
    return heads * _head_bytes(layer, kv, kept)


def token_limits(layer: LayerShape, kv: KVConfig) -> list[int]:
    """Most tokens the layer keeps, by the model's own window and by the setting's."""
    asked = None if kv.window is None else kv.window + kv.sinks
    return [limit for limit in (layer.window, asked) if limit is not None]


def _head_bytes(layer: LayerShape, kv: KVConfig, kept: int) -> int:
    """Bytes of ``kept`` keys and values of one head."""
    if kv.granularity == "kivi" and is_quantised(kv):
        return _kivi_key_bytes(kv, layer.k_dim, kept) + _tail_bytes(kv, kv.v_dtype, layer.v_dim, kept, "values")
    keys = _tail_bytes(kv, kv.k_dtype, layer.k_dim, kept, "keys")
    return keys + _tail_bytes(kv, kv.v_dtype, layer.v_dim, kept, "values")


def _tail_bytes(kv: KVConfig, dtype: str, dim: int, kept: int, side: str) -> int:
    """Quantised tokens, then the newest ``residual`` ones in 16 bit."""
    tail = min(kept, kv.residual) if bits_of(dtype) < 16 else 0
    return (kept - tail) * sum(token_bytes(kv, dtype, dim, side)) + tail * dim * SIXTEEN_BIT_BYTES


def _kivi_key_bytes(kv: KVConfig, dim: int, kept: int) -> int:
    """KIVI keys: whole residuals are quantised per channel, a scale and a minimum for each group of tokens."""
    bits = bits_of(kv.k_dtype)
    if bits >= 16:
        return kept * dim * bits // 8
    tail = kept % kv.residual
    quantised = kept - tail
    groups = quantised // (kv.group_size or kv.residual)
    return quantised * dim * bits // 8 + groups * dim * 2 * _FP16_BYTES + tail * dim * SIXTEEN_BIT_BYTES
