"""Checks before loading whether the transformers backend can store a model's keys and values in a format."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from niah.backends.transformers.support import storing
from niah.kv.config import KVConfig
from niah.kv.formats import Packaged
from niah.kv.memory.formulas import head_problem, setting_of_layer
from niah.models.shape import LayerShape, ModelShape
from niah.types import Problem

# quantizers of packages by layout: module, and distribution
PACKAGES = {"quanto": ("optimum.quanto", "optimum-quanto"), "hqq": ("hqq", "hqq")}


def format_problems(kv: KVConfig, shape: ModelShape | None) -> list[Problem]:
    """Reasons why keys and values cannot be stored as asked; pure but for looking up installed packages."""
    twice = list(_stored_twice(kv))
    if twice or not kv.is_quantized:
        return twice
    return [*_packages(kv), *(_shape(kv, shape) if shape is not None else ())]


def _stored_twice(kv: KVConfig) -> Iterator[Problem]:
    for pair in dict.fromkeys(stored.pair for _, stored in kv.sides):
        names = storing(pair)
        if len(names) > 1:
            reason = f"the stored formats {' and '.join(names)} both store {pair[0]} in the layout {pair[1]!r}"
            yield Problem("kv", kv.name, reason, "Give the layout of one of them another name.")


def _packages(kv: KVConfig) -> Iterator[Problem]:
    if not isinstance(kv.keys, Packaged):
        return
    module, distribution = PACKAGES[kv.keys.layout]
    if not _installed(module):
        hint = f"pip install 'niah-kv[{kv.keys.layout}]'"
        yield Problem("kv", kv.name, f"it needs the package {distribution}, which is not installed", hint)
    if kv.skip_layers:
        reason = "transformers' QuantizedCache quantizes every layer"
        yield Problem("kv", kv.name, reason, f"Use int{kv.keys.bits} with skip where it exists.")


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False


def _shape(kv: KVConfig, shape: ModelShape) -> Iterator[Problem]:
    if shape.is_mla:
        hint = "Use a 16-bit setting: the latent is already compressed."
        yield Problem("kv", kv.name, "the model stores a latent, not K and V to quantize", hint)
        return
    count = len(shape.layers)
    for skip in kv.skip_layers:
        if isinstance(skip, int) and not -count <= skip < count:
            yield Problem("kv", kv.name, f"there is no layer {skip}", f"The model has layers 0 to {count - 1}.")
    used = [(setting_of_layer(shape, kv, index), layer) for index, layer in enumerate(shape.layers)]
    stored = [layer for one, layer in used if layer.stores_tokens and one.is_quantized]
    yield from _windows(kv, stored)
    yield from _heads(kv, stored)


def _windows(kv: KVConfig, layers: list[LayerShape]) -> Iterator[Problem]:
    if kv.keys.tokens_stand_alone or not any(layer.window for layer in layers):
        return
    if isinstance(kv.keys, Packaged):
        reason = "transformers' QuantizedCache refuses models with window layers"
        yield Problem("kv", kv.name, reason, f"Use int{kv.keys.bits} or k8v4, whose layers have windows.")
        return
    reason = f"{kv.keys.label} quantizes many tokens together, and window layers drop them one at a time"
    yield Problem("kv", kv.name, reason, f"Use {kv.name}+skip(sliding_window), k8v4 or int4.")


def _heads(kv: KVConfig, layers: list[LayerShape]) -> Iterator[Problem]:
    """Head sizes not divisible by the group size, or whose elements do not fill whole bytes."""
    dims = {
        "keys": sorted({layer.k_dim for layer in layers}),
        "values": sorted({layer.v_dim for layer in layers}),
    }
    for side, stored in kv.sides:
        for dim in dims[side]:
            problem = head_problem(stored, dim)
            if problem:
                reason, _, hint = problem.format(side=side, model="this model").rstrip(".").partition("; ")
                yield Problem("kv", kv.name, reason, f"{hint[:1].upper()}{hint[1:]}." if hint else "")
