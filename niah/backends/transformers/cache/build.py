"""From a ``KVConfig`` and a model's shape to a transformers cache; which file stores a type is found by the type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import cache_utils

from niah import registry
from niah.backends.transformers.cache.layer import CacheFormat, Codec, Side, StoredLayer
from niah.backends.transformers.stored import objection, takes
from niah.errors import ConfigError
from niah.kv.config import KVConfig
from niah.kv.memory.totals import setting_of_layer
from niah.models.shape import ModelShape


def _plugins() -> Iterator[CacheFormat]:
    for name in registry.names("formats"):
        yield registry.load("formats", name)


def _plugin(kv: KVConfig, element: str) -> CacheFormat:
    for plugin in _plugins():
        if any(takes(one, kv, element) for one in plugin.stores):
            return plugin
    raise ConfigError(f"{kv.name}: {objection(kv, element) or f'no cache layer stores {element}'}.")


def stored_dtypes() -> frozenset[str]:
    """Element types that some file here can store."""
    return frozenset(element for plugin in _plugins() for one in plugin.stores for element in one.elements)


def build_cache(kv: KVConfig, shape: ModelShape) -> cache_utils.Cache:
    """A cache of one ``StoredLayer`` per model layer, windows as the model has them, skipped layers in 16 bit."""
    layers: list[cache_utils.CacheLayerMixin] = []
    for index, layer in enumerate(shape.layers):
        if layer.kind == "shared":
            layers += _nothing()
            continue
        window = min((w for w in (layer.window, kv.window) if w is not None), default=None)
        layers.append(_layer(setting_of_layer(shape, kv, index), shape.native_dtype, window))
    return cache_utils.Cache(layers=layers)


def library_differs(config: Any, shape: ModelShape | None) -> str:
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
        # a plain layer of a model that attends within windows by its mask alone keeps more, which is its own affair
        window = getattr(theirs, "sliding_window", None)
        if window is not None and window != ours.window:
            return f"layer {index} keeps {window} tokens in transformers, {ours.window or 'all'} by the config"
    return ""


def _layer(kv: KVConfig, sixteen_bit: str, window: int | None) -> StoredLayer:
    return StoredLayer(_stored(kv, "k", sixteen_bit), _stored(kv, "v", sixteen_bit), window)


def _stored(kv: KVConfig, side: str, sixteen_bit: str) -> Codec | Side:
    plugin = _plugin(kv, kv.k_dtype if side == "k" else kv.v_dtype)
    made: Codec | Side = plugin.codec(kv, side) if plugin.side is None else plugin.side(kv, side, sixteen_bit)
    return made


def _nothing() -> list[cache_utils.CacheLayerMixin]:
    """What stands for a layer that reads another's cache: releases before 5.19 have no entry for it, it comes last."""
    dummy = getattr(cache_utils, "DummyLayer", None)
    return [dummy()] if dummy is not None else []
