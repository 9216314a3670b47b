"""The formula of a KV setting with a model's numbers filled in, and what the textbook formula makes of that model."""

from __future__ import annotations

from niah.kv.config import KVConfig, is_quantised
from niah.kv.memory.library import LIBRARIES
from niah.kv.memory.totals import (
    SIXTEEN_BIT_BYTES,
    bits_of,
    check_setting,
    kv_bytes,
    naive_mha_bytes,
    reference_bytes,
    setting_of_layer,
    token_bytes,
    token_limits,
)
from niah.models.shape import LayerShape, ModelShape


def formula_text(shape: ModelShape, kv: KVConfig) -> str:
    """The formula of one sequence with the model's numbers filled in; T is the number of stored tokens.

    Raises:
        ConfigError: as ``kv_bytes``.
    """
    check_setting(shape, kv)
    groups: dict[tuple[LayerShape, KVConfig], int] = {}
    for index, layer in enumerate(shape.layers):
        key = (layer, setting_of_layer(shape, kv, index))
        groups[key] = groups.get(key, 0) + 1
    text = " + ".join(_term(layer, used, count) for (layer, used), count in groups.items())
    # only a cache that grows by the same amount with each token has a figure per token
    per_token = kv_bytes(shape, kv, 1)
    grows_evenly = kv.memory == "kv" and kv.granularity not in LIBRARIES
    if grows_evenly and all(not token_limits(layer, used) and not used.residual for layer, used in groups):
        constant = kv_bytes(shape, kv, 0)
        text += f" = {per_token - constant:,} B × T" + (f" + {constant:,} B" if constant else "")
    if kv.residual and is_quantised(kv):
        text += f", r = min(N, {kv.residual})"
        text += f", q = N − N mod {kv.residual}" if kv.granularity == "kivi" else ""
    return text + (f"; {shape.uncounted}" if shape.uncounted else "")


def _term(layer: LayerShape, kv: KVConfig, count: int) -> str:
    layers = f"{count} layer{'s' if count > 1 else ''}"
    nothing = {"shared": "cache shared", "cross": "attention to an image", "none": "no attention"}
    if layer.kind in nothing:
        return f"{layers} × 0 B ({nothing[layer.kind]})"
    if layer.kind == "linear":
        return f"{layers} × {'0 B of tokens' if layer.uncounted else f'{layer.state_bytes:,} B of state'}"
    limits = token_limits(layer, kv)
    kept = f"min(T, {min(limits):,})" if limits else "T"
    if layer.latent:
        return f"{layers} × ({layer.k_dim} + {layer.v_dim}) latent elements × {kept} × 2 B"
    heads = kv.kv_heads or layer.kv_heads
    base = f"{layers} × {heads} KV head{'s' if heads > 1 else ''}"
    if kv.memory == "infini":
        segment = f"min(T, {kv.segment:,}) × {_token_text(layer, kv)}"
        return f"{base} × (({layer.k_dim} × {layer.v_dim} + {layer.k_dim}) × 4 B + {segment})"
    if kv.granularity == "kivi" and is_quantised(kv):
        return f"{base} × {_kivi_text(layer, kv, kept)}"
    if not is_quantised(kv) and layer.k_dim == layer.v_dim and kv.k_dtype == kv.v_dtype:
        return f"2 × {base} × {layer.k_dim} × {kept} × {bits_of(kv.k_dtype) // 8} B"
    if not kv.residual or not is_quantised(kv):
        return f"{base} × {_token_text(layer, kv)} × {kept}"
    sides = ((kv.k_dtype, layer.k_dim), (kv.v_dtype, layer.v_dim))
    tail = " + ".join(f"{dim * max(SIXTEEN_BIT_BYTES, bits_of(dtype) // 8)} B" for dtype, dim in sides)
    return f"{base} × [{_token_text(layer, kv)} × (N − r) + ({tail}) × r, N = {kept}]"


def _token_text(layer: LayerShape, kv: KVConfig) -> str:
    """One token's keys and values: ``(K 64 B + 4 B scales, V 64 B + 4 B scales)``."""
    parts = []
    for label, side, dtype, dim in (
        ("K", "keys", kv.k_dtype, layer.k_dim),
        ("V", "values", kv.v_dtype, layer.v_dim),
    ):
        payload, scales = token_bytes(kv, dtype, dim, side)
        parts.append(f"{label} {payload} B" + (f" + {scales} B scales" if scales else ""))
    return f"({' + '.join(parts)})"


def _kivi_text(layer: LayerShape, kv: KVConfig, kept: str) -> str:
    group, bits = kv.group_size or kv.residual, bits_of(kv.k_dtype)
    value, scales = token_bytes(kv, kv.v_dtype, layer.v_dim, "values")
    keys = f"K: {layer.k_dim * bits / 8:g} B × q + {layer.k_dim * 4} B × q/{group} + {layer.k_dim * 2} B × (N − q)"
    values = f"V: {value + scales} B × (N − r) + {layer.v_dim * 2} B × r"
    return f"[{keys}; {values}; N = {kept}]"


def naive_note(shape: ModelShape, tokens: int) -> str:
    """One sentence for people: how far the textbook formula is off at this length, and why."""
    naive, real = naive_mha_bytes(shape, tokens), reference_bytes(shape, tokens)
    reasons = _naive_reasons(shape)
    if not reasons and naive == real and not shape.uncounted:
        return "The MHA formula is right for this model: each head stores its own keys and values."
    if naive == real:
        off = "right by chance"
    elif naive > real:
        off = f"{naive / real:.3g} × too big" if real else "too big"
    else:
        off = f"{real / naive:.3g} × too small" if naive else "too small"
    reasons = reasons or ["does not describe the caches of this model"]
    return f"The MHA formula {', and '.join(reasons)}: {off} at {tokens:,} tokens."


def _naive_reasons(shape: ModelShape) -> list[str]:
    stored = [layer for layer in shape.layers if layer.stores_tokens]
    reasons = []
    if shape.is_mla:
        latent = max(layer.latent for layer in stored)
        reasons.append(f"counts 2 × {shape.hidden_size} elements a layer where this model stores a latent of {latent}")
    else:
        heads = " or ".join(str(count) for count in shape.kv_heads)
        if shape.kv_heads != (shape.heads,):
            noun = "KV head" if heads == "1" else "KV heads"
            reasons.append(f"uses {shape.heads} heads where this model stores {heads} {noun}")
        implied = shape.hidden_size / shape.heads
        if any(dim != implied for dim in shape.head_dims):
            dims = " or ".join(str(dim) for dim in shape.head_dims)
            reasons.append(f"takes heads of hidden size / heads = {implied:g} elements where they have {dims}")
    limited = [layer.window for layer in stored if layer.window is not None]
    if limited:
        reasons.append(f"counts all tokens where {len(limited)} of {len(shape.layers)} layers keep {max(limited):,}")
    others = len(shape.layers) - len(stored)
    if others:
        reasons.append(f"counts {len(shape.layers)} layers where {others} of them store no tokens")
    return reasons
