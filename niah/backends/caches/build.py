"""From a ``KVConfig`` and a model's shape to a transformers cache; which file stores a type is found by the type."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from transformers import cache_utils

from niah.backends.caches.base import CachePlugin, StoredLayer
from niah.kv.base import KVConfig
from niah.kv.shape import ModelShape

_SUPPORT = {"base", "build"}


@cache
def _plugins() -> dict[str, CachePlugin]:
    found: dict[str, CachePlugin] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name in _SUPPORT:
            continue
        plugin: CachePlugin = importlib.import_module(f"niah.backends.caches.{module.name}").CACHE
        found |= dict.fromkeys(plugin.dtypes, plugin)
    return found


def stored_dtypes() -> frozenset[str]:
    """Element types that some file here can store."""
    return frozenset(_plugins())


def build_cache(kv: KVConfig, shape: ModelShape) -> cache_utils.Cache:
    """A cache of one ``StoredLayer`` per model layer, windows as the model has them."""
    plugins = _plugins()
    layers: list[cache_utils.CacheLayerMixin] = []
    for layer in shape.layers:
        if layer.kind == "shared":
            layers += _nothing()
            continue
        window = min((w for w in (layer.window, kv.window) if w is not None), default=None)
        keys, values = plugins[kv.k_dtype].codec(kv, "k"), plugins[kv.v_dtype].codec(kv, "v")
        layers.append(StoredLayer(keys, values, window))
    return cache_utils.Cache(layers=layers)


def _nothing() -> list[cache_utils.CacheLayerMixin]:
    """What stands for a layer that reads another's cache: releases before 5.19 have no entry for it, it comes last."""
    dummy = getattr(cache_utils, "DummyLayer", None)
    return [dummy()] if dummy is not None else []
