"""Every KV preset that the transformers backend stores: bytes by formula, what attention reads, crop and fork."""

from __future__ import annotations

import pytest
import torch
from transformers import DynamicCache

from niah import registry
from niah.backends.caches.base import StoredLayer
from niah.backends.caches.build import build_cache, stored_dtypes
from niah.backends._hf_formats import STORED
from niah.backends.transformers import PLUGIN
from niah.kv.base import KVConfig
from niah.kv.memory import kv_bytes
from niah.kv.parse import parse_one
from niah.types import Host
from tests import tiny_models

LENGTHS = [1, 23, 24, 25, 31, 33, 100]


def _presets() -> list[KVConfig]:
    """Presets without required arguments that the backend says it runs."""
    shape = tiny_models.shape_of(tiny_models.llama())
    settings = []
    for name in registry.names("kv"):
        preset = registry.load("kv", name)
        if any(default is None for default in (preset.parameters or {}).values()):
            continue
        setting = parse_one(preset.example or name)
        if setting.k_dtype != "auto" and not PLUGIN.check(PLUGIN.options(), setting, shape, Host()):
            settings.append(setting)
    return [*settings, parse_one("int4(group_size=16)"), KVConfig("fp32", k_dtype="fp32", v_dtype="fp32")]


PRESETS = _presets()


def test_the_backend_says_what_the_files_store() -> None:
    assert stored_dtypes() == STORED
    assert {"bf16", "fp16", "int8", "int4"} <= {kv.name for kv in PRESETS}


def _filled(kind: str, kv: KVConfig, tokens: int, chunk: int = 20):
    loaded = tiny_models.ALL[kind]()
    cache = build_cache(kv, tiny_models.shape_of(loaded))
    ids = torch.randint(3, 97, (tokens,), generator=torch.Generator().manual_seed(2)).tolist()
    with torch.inference_mode():
        logits = torch.empty(0)
        for start in range(0, tokens, chunk):
            piece = ids[start : start + chunk]
            logits = loaded.step(piece, list(range(start, start + len(piece))), cache)
    return loaded, cache, ids, logits


@pytest.mark.parametrize("kv", PRESETS, ids=lambda kv: kv.name)
@pytest.mark.parametrize("kind", sorted(tiny_models.ALL))
@pytest.mark.parametrize("tokens", LENGTHS)
def test_measured_bytes_equal_the_formula(kv: KVConfig, kind: str, tokens: int) -> None:
    loaded, cache, _, _ = _filled(kind, kv, tokens)
    measured = sum(layer.logical_bytes(tokens) for layer in cache.layers)
    assert measured == kv_bytes(tiny_models.shape_of(loaded), kv, tokens)
    held = sum({k: v for layer in cache.layers for k, v in layer.storages().items()}.values())
    assert held >= measured
    for layer in cache.layers:
        assert layer.slots == (tokens if layer.window is None else min(tokens, layer.window))


@pytest.mark.parametrize("kv", PRESETS, ids=lambda kv: kv.name)
@pytest.mark.parametrize("kind", sorted(tiny_models.ALL))
def test_windows_are_really_dropped_from_storage(kv: KVConfig, kind: str) -> None:
    """A sliced view would keep the whole tensor alive; the storage itself must be bounded."""
    _, short, _, _ = _filled(kind, kv, 60)
    _, long, _, _ = _filled(kind, kv, 400)
    for a, b in zip(short.layers, long.layers, strict=True):
        if a.window is not None:
            assert sum(b.storages().values()) == sum(a.storages().values())


@pytest.mark.parametrize("kv", PRESETS, ids=lambda kv: kv.name)
def test_a_window_layer_never_holds_more_than_window_and_chunk(kv: KVConfig) -> None:
    loaded = tiny_models.gemma3()
    cache = build_cache(kv, tiny_models.shape_of(loaded))
    for layer in cache.layers:
        layer.reserve(300, 50)
    with torch.inference_mode():
        for start in range(0, 300, 20):
            loaded.step([5] * 20, list(range(start, start + 20)), cache)
    for layer in cache.layers:
        slots = layer.peak_bytes // sum(side.slot_bytes() for side in layer._sides)
        assert slots == (350 if layer.window is None else 24 + 20)


@pytest.mark.parametrize("kind", sorted(tiny_models.ALL))
def test_full_precision_equals_the_library_cache(kind: str) -> None:
    loaded, _, ids, logits = _filled(kind, KVConfig("fp32", k_dtype="fp32", v_dtype="fp32"), 77)
    with torch.inference_mode():
        plain = loaded.model(
            input_ids=torch.tensor([ids]), **{loaded.cache_word: DynamicCache(config=loaded.model.config)}
        ).logits[0, -1]
    assert torch.allclose(logits[0], plain, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("kv", PRESETS, ids=lambda kv: kv.name)
def test_attention_reads_what_is_stored_already_in_prefill(kv: KVConfig) -> None:
    layer = build_cache(kv, tiny_models.shape_of(tiny_models.llama())).layers[0]
    generator = torch.Generator().manual_seed(3)
    keys, values = (torch.randn(1, 2, 7, 32, generator=generator) for _ in range(2))
    read_keys, read_values = layer.update(keys, values)
    again = [side.read(torch.float32) for side in layer._sides]
    assert torch.equal(read_keys, again[0])
    assert torch.equal(read_values, again[1])
    if kv.k_dtype != "fp32":
        assert not torch.equal(read_keys, keys)


@pytest.mark.parametrize("kv", PRESETS, ids=lambda kv: kv.name)
def test_crop_and_fork_equal_a_cold_prefill(kv: KVConfig) -> None:
    loaded, cold, ids, _ = _filled("llama", kv, 40, chunk=40)
    _, warm, _, _ = _filled("llama", kv, 40, chunk=40)
    with torch.inference_mode():
        loaded.step([5, 6, 7], [40, 41, 42], warm)
        for layer in warm.layers:
            layer.crop(-3)
        forked = type(warm)(layers=[layer.fork() for layer in warm.layers])
        expected = loaded.step([9, 10], [40, 41], cold)
        assert torch.equal(loaded.step([9, 10], [40, 41], forked), expected)
        # the fork shares nothing: the original still continues from 40 tokens
        assert torch.equal(loaded.step([9, 10], [40, 41], warm), expected)
    assert len(ids) == 40


def test_a_window_layer_that_dropped_tokens_cannot_be_cropped() -> None:
    _, cache, _, _ = _filled("mistral", parse_one("bf16"), 60)
    layer: StoredLayer = cache.layers[0]
    assert not layer.can_crop
    with pytest.raises(ValueError, match="cannot be cropped"):
        layer.crop(-1)
