"""KV-cache bytes of whole models, by setting, in 16 bit and by the textbook formula; parsing and printing of bytes."""

from __future__ import annotations

import re
from fractions import Fraction

from niah.errors import ConfigError
from niah.kv.config import KVConfig
from niah.kv.formats import SIXTEEN_BIT_BYTES
from niah.kv.memory.formulas import check_setting, layer_bytes, setting_of_layer
from niah.models.shape import ModelShape

KIB, MIB, GIB, TIB = 1024, 1024**2, 1024**3, 1024**4
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB}
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
        raise ConfigError(f"{text!r} is not a positive amount of memory; write for instance 80GiB.")
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
        total += layer_bytes(layer, setting_of_layer(shape, kv, index), tokens)
    return total * batch


def paged_bytes(shape: ModelShape, kv: KVConfig, tokens: int, batch: int = 1) -> int:
    """As ``kv_bytes``, with the unfilled slots of each sequence's last block where the setting has blocks.

    A window layer is counted by its window: how many blocks an engine holds for one depends on its chunks.

    Raises:
        ConfigError: as ``kv_bytes``.
    """
    _check_amounts(tokens, batch)
    block = kv.placement.block_size or 1
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


def _check_amounts(tokens: int, batch: int) -> None:
    if tokens < 0 or batch < 1:
        raise ConfigError(
            f"{tokens} tokens in a batch of {batch} is no cache; give at least 0 tokens and a batch of 1."
        )
