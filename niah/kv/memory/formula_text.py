"""Prints the memory formula of a KV setting with a model's numbers, and compares it with the textbook formula."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.formats import SIXTEEN_BIT_BYTES
from niah.kv.memory.formulas import check_setting, setting_of_layer, token_limits
from niah.kv.memory.totals import kv_bytes, naive_mha_bytes, reference_bytes
from niah.models.shape import LayerShape, ModelShape

# a length beyond what windows and segments keep
_MANY = 2**40


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
    thinned = [extra.aspect for extra in kv.extras if extra.kept(_MANY) < _MANY]
    grows_evenly = kv.memory is None and kv.keys.fills_bytes_evenly and not kv.residual and not thinned
    if grows_evenly and not any(token_limits(layer, used) for layer, used in groups):
        constant = kv_bytes(shape, kv, 0)
        text += f" = {per_token - constant:,} B × T" + (f" + {constant:,} B" if constant else "")
    if kv.residual and kv.is_quantized:
        text += f", r = min(N, {kv.residual})"
        text += "" if kv.keys.tokens_stand_alone else f", q = N − N mod {kv.residual}"
    text += "".join(f", T as {aspect} keeps them" for aspect in thinned)
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
    if kv.memory is not None:
        segment = f"min(T, {kv.memory.segment:,}) × {_token_text(layer, kv)}"
        return f"{base} × (({layer.k_dim} × {layer.v_dim} + {layer.k_dim}) × 4 B + {segment})"
    sides = ((kv.keys, "K", layer.k_dim), (kv.values, "V", layer.v_dim))
    if not kv.keys.tokens_stand_alone and kv.residual:
        return f"{base} × [{'; '.join(stored.formula(letter, dim) for stored, letter, dim in sides)}; N = {kept}]"
    if not kv.is_quantized and layer.k_dim == layer.v_dim and kv.keys == kv.values:
        return f"2 × {base} × {layer.k_dim} × {kept} × {kv.keys.bits // 8} B"
    if not kv.residual or not kv.is_quantized:
        return f"{base} × {_token_text(layer, kv)} × {kept}"
    tail = " + ".join(f"{dim * max(SIXTEEN_BIT_BYTES, stored.bits // 8)} B" for stored, _, dim in sides)
    return f"{base} × [{_token_text(layer, kv)} × (N − r) + ({tail}) × r, N = {kept}]"


def _token_text(layer: LayerShape, kv: KVConfig) -> str:
    """One token's keys and values: ``(K 64 B + 4 B scales + V 64 B + 4 B scales)``."""
    return f"({kv.keys.formula('K', layer.k_dim)} + {kv.values.formula('V', layer.v_dim)})"


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
