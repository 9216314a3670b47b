"""Formulas for the bytes of one layer's cache under a setting, and which settings a model's layers support.

T is the number of tokens whose K and V are stored. Per layer, for one sequence:

=====================  =============================================================================
16 bit                 ``kv_heads · (k_dim + v_dim) · T · 2``; MLA ``(kv_lora_rank + rope dims) · T · 2``
window, chunked        the same with ``min(T, W)``; sinks and window: ``min(T, sinks + window)``
per token and head     one 4-byte scale beside each key and each value (vLLM's ``int8_`` and ``int4_per_token_head``)
nvfp4, UltraQuant      one byte of scale per 16 or 32 elements
groups along head_dim  fp16 scale (and fp16 zero point) per group
llama.cpp blocks       34, 24, 22, 20, 18, 18 B per 32 elements: q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl
KIVI                   arXiv:2402.02750: keys per channel in groups of tokens, values per token, 16-bit residual
Infini-attention       arXiv:2404.07143: ``(k_dim · v_dim + k_dim) · 4`` per head, and one local segment
linear, shared         a constant state; nothing
quanto, hqq            as the packages pack it (``_library``)
TurboQuant             keys 2 bytes, values 4 bytes of scales per token and head; none beside fp8 keys (vLLM 0.32)
=====================  =============================================================================

All figures are logical bytes: no padding, pages or reserved pools, and totals over all devices.
"""

from __future__ import annotations

from dataclasses import replace

from niah.errors import ConfigError
from niah.kv.config import KVConfig
from niah.kv.formats import Format, Plain
from niah.models.shape import LayerShape, ModelShape


def check_setting(shape: ModelShape, kv: KVConfig) -> None:
    """Refuse a setting that this model's cache does not support.

    Raises:
        ConfigError: groups that do not divide the head size, heads that cannot be merged, layers that are not there, or
            a quantized latent.
    """
    count = len(shape.layers)
    for skip in kv.skip_layers:
        if isinstance(skip, int) and not -count <= skip < count:
            raise ConfigError(f"{kv.name}: skip_layers {skip}, but {shape.name!r} has layers 0 to {count - 1}.")
    for index, layer in enumerate(shape.layers):
        if layer.stores_tokens:
            _check_layer(shape, layer, setting_of_layer(shape, kv, index))


def _check_layer(shape: ModelShape, layer: LayerShape, kv: KVConfig) -> None:
    if layer.latent and (kv.is_quantized or kv.kv_heads is not None or kv.memory is not None):
        raise ConfigError(
            f"{kv.name}: {shape.name!r} stores an MLA latent of {layer.latent} elements per token, so there is no K/V "
            "to quantize or merge; use bf16."
        )
    if kv.kv_heads is not None and layer.kv_heads % kv.kv_heads:
        raise ConfigError(
            f"{kv.name}: {layer.kv_heads} KV heads of {shape.name!r} cannot be merged to {kv.kv_heads}; "
            f"give a divisor of {layer.kv_heads}."
        )
    for (side, stored), dim in zip(kv.sides, (layer.k_dim, layer.v_dim), strict=True):
        problem = head_problem(stored, dim)
        if problem:
            raise ConfigError(f"{kv.name}: {problem.format(side=side, model=repr(shape.name))}")
    if not kv.keys.tokens_stand_alone and layer.window is not None:
        raise ConfigError(
            f"{kv.name}: {kv.keys.label} quantizes many tokens together, and the window layers of {shape.name!r} "
            f"drop them one at a time; use {kv.name}+skip(sliding_window) or int4."
        )


def head_problem(stored: Format, dim: int) -> str:
    """Why heads of ``dim`` elements cannot be stored so, with ``{side}`` and ``{model}`` to be filled in."""
    group = stored.group(dim)
    if group is not None and dim % group:
        return (
            f"groups of {group} do not fit the {{side}} of {{model}}, whose heads have {dim} elements "
            f"({dim} = {dim // group} × {group} + {dim % group}); use a group_size that divides {dim}."
        )
    if dim * stored.bits % 8:
        return f"{dim} elements of {stored.bits} bits do not fill whole bytes; use an 8-bit format."
    problem = stored.head_problem(dim)
    return f"{problem}." if problem else ""


def setting_of_layer(shape: ModelShape, kv: KVConfig, index: int) -> KVConfig:
    """The setting of one layer: in the model's own 16-bit type where the layer is skipped, and without a list of them.

    Skipped are the layers that the setting names and those that the format leaves in 16 bit by itself. What they keep
    is the type, not the tokens.
    """
    if not _is_skipped(shape, kv, index):
        return replace(kv, skip_layers=()) if kv.skip_layers else kv
    own = Plain(shape.native_dtype)
    return replace(kv, keys=own, values=own, residual=0, skip_layers=(), prefill_reads="stored")


def layers_in_16_bit(shape: ModelShape, kv: KVConfig) -> list[int]:
    """Layers with tokens that a quantized setting leaves in the model's own 16-bit type, in order."""
    stored = [index for index, layer in enumerate(shape.layers) if layer.stores_tokens]
    return [index for index in stored if kv.is_quantized and _is_skipped(shape, kv, index)]


def _is_skipped(shape: ModelShape, kv: KVConfig, index: int) -> bool:
    count = len(shape.layers)
    if index in kv.skip_layers or index - count in kv.skip_layers:
        return True
    # vLLM leaves out no layer of a model whose other layers have linear attention
    if index in kv.keys.layers_in_16_bit(count) and all(layer.kind != "linear" for layer in shape.layers):
        return True
    return "sliding_window" in kv.skip_layers and shape.layers[index].kind in ("window", "chunked")


def layer_bytes(layer: LayerShape, kv: KVConfig, tokens: int) -> int:
    """Bytes of one layer for a sequence of ``tokens``, under the setting of that layer."""
    if not layer.stores_tokens:
        return layer.state_bytes
    heads = kv.kv_heads or layer.kv_heads
    state = 0
    if kv.memory is not None:
        state = heads * kv.memory.state_bytes(layer.k_dim, layer.v_dim)
    kept = min([tokens, *token_limits(layer, kv), *(extra.kept(tokens) for extra in kv.extras)])
    sides = ((kv.keys, layer.k_dim), (kv.values, layer.v_dim))
    return state + sum(stored.side_bytes(heads, dim, kept, kv.residual) for stored, dim in sides)


def token_limits(layer: LayerShape, kv: KVConfig) -> list[int]:
    """Most tokens that the layer keeps: by the model's own window, by the setting's, and by a memory's segment."""
    if kv.memory is not None:
        return [kv.memory.segment]
    return [limit for limit in (layer.window, kv.tokens.most) if limit is not None]
