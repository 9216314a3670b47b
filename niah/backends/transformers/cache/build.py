"""Builds a transformers cache from a ``KVConfig`` and a model's shape, with the format that stores each type."""

from __future__ import annotations

from typing import Any

import torch
from transformers import cache_utils

from niah import registry
from niah.backends.transformers.cache.layer import DTYPES, CacheFormat, Codec, Side, StoredLayer
from niah.backends.transformers.support import storing
from niah.errors import ConfigError
from niah.kv.config import KVConfig
from niah.kv.formats import Format
from niah.kv.memory.formulas import setting_of_layer
from niah.models.shape import ModelShape


def _stores(pair: tuple[str, str]) -> CacheFormat:
    """The ``CacheFormat`` that stores an element in a layout.

    Raises:
        ConfigError: none does.
    """
    names = storing(pair)
    if not names:
        raise ConfigError(f"no cache layer stores {pair[0]} with the layout {pair[1]}.")
    found: CacheFormat = registry.load("formats", names[0])
    return found


def build_cache(kv: KVConfig, shape: ModelShape) -> cache_utils.Cache:
    """A cache of one ``StoredLayer`` per model layer, windows as the model has them, skipped layers in 16 bit."""
    layers: list[cache_utils.CacheLayerMixin] = []
    for index, layer in enumerate(shape.layers):
        if layer.kind == "shared":
            layers += _nothing()
            continue
        window = min((w for w in (layer.window, kv.window.size if kv.window else None) if w is not None), default=None)
        layers.append(_layer(setting_of_layer(shape, kv, index), shape.native_dtype, window))
    return cache_utils.Cache(layers=layers)


def layout_difference(config: Any, shape: ModelShape | None) -> str:
    """How the cache that transformers itself builds for a model differs from its shape; empty where it does not.

    Args:
        config: the loaded model's text config.
    """
    if shape is None:
        return ""
    library = cache_utils.DynamicCache(config=config).layers
    own = [layer for layer in shape.layers if layer.kind != "shared"]
    if not library:  # the layers come as the model runs
        return ""
    if len(library) not in (len(own), len(shape.layers)):
        return f"{len(library)} layers in transformers, {len(shape.layers)} by the config"
    for index, (theirs, ours) in enumerate(zip(library, own, strict=False)):
        # models that apply a window by the mask alone keep more tokens, which is allowed
        window = getattr(theirs, "sliding_window", None)
        if window is not None and window != ours.window:
            return f"layer {index} keeps {window} tokens in transformers, {ours.window or 'all'} by the config"
    return ""


def _layer(kv: KVConfig, sixteen_bit: str, window: int | None) -> StoredLayer:
    keys, values = (_side(kv, stored, DTYPES[sixteen_bit]) for _, stored in kv.sides)
    return StoredLayer(keys, values, window)


def _side(kv: KVConfig, stored: Format, sixteen_bit: torch.dtype) -> Codec | Side:
    plugin = _stores(stored.pair)
    if plugin.side is not None:
        return plugin.side(stored, kv.residual, sixteen_bit)
    if plugin.codec is None:
        raise ConfigError(f"the stored format {plugin.name!r} has neither a codec nor a side.")
    return plugin.codec(stored)


def _nothing() -> list[cache_utils.CacheLayerMixin]:
    """What stands for a layer that reads another's cache: releases before 5.19 have no entry for it, it comes last."""
    dummy = getattr(cache_utils, "DummyLayer", None)
    return [dummy()] if dummy is not None else []
