"""Formats and aspects that the transformers backend supports, read by the check of a run and by the cache.

A file in ``formats`` stores the pairs that stand under its name here, so that a plan need not import torch to know
them. Formats and methods that come as plugins bring their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from niah import registry
from niah.engines.support import Support

# pairs of element type and layout by the file in ``formats`` that stores them
FORMATS: Mapping[str, frozenset[tuple[str, str]]] = {
    "plain": frozenset({("bf16", "none"), ("fp16", "none"), ("fp32", "none")}),
    "int8": frozenset({("int8", "token_head")}),
    "int4": frozenset({("int4", "group_token")}),
    "fp8": frozenset(
        (element, layout + rounding)
        for element in ("fp8_e4m3", "fp8_e5m2")
        for layout in ("unit_scale", "token_head")
        for rounding in ("", "_toward_zero")
    ),
    "kivi": frozenset((element, side) for element in ("int4", "int2") for side in ("kivi_keys", "kivi_values")),
    "quanto": frozenset({("int4", "quanto"), ("int2", "quanto")}),
    "hqq": frozenset({("int4", "hqq"), ("int8", "hqq")}),
}
# what the session and the files in ``methods`` do
ASPECTS = frozenset(
    {"merged_heads", "skip_layers", "window", "sinks", "compressive_memory", "context_parallel", "offload"}
)


def storing(pair: tuple[str, str]) -> list[str]:
    """Names of the formats that store an element in a layout, niah's own first; more than one is an error."""
    own = [name for name, pairs in FORMATS.items() if pair in pairs]
    return own + [name for name, plugin in registry.added("formats").items() if pair in plugin.stores]


def support() -> Support:
    """All supported formats and aspects, plugins included."""
    formats = {("auto", "none"), *(pair for pairs in FORMATS.values() for pair in pairs)}
    aspects = set(ASPECTS)
    for stored in registry.added("formats").values():
        formats |= stored.stores
    for method in registry.added("methods").values():
        aspects |= method.aspects
    return Support(frozenset(formats), frozenset(aspects))
