"""Every KV preset that the transformers backend stores: bytes by formula, what attention reads, crop and fork."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from transformers import DynamicCache

from niah import registry
from niah.backends.transformers.cache.build import build_cache
from niah.backends.transformers.cache.layer import StoredLayer
from niah.backends.transformers.plugin import PLUGIN
from niah.backends.transformers.support import FORMATS
from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from niah.kv.grammar import parse_one
from niah.kv.memory.totals import kv_bytes
from niah.models.shape import ModelShape
from niah.types import Host
from tests.helpers import tiny_models

# around 16-bit residuals of 16 and 128, groups of 8 and 32, a window of 24, and where chunks of 20 end
LENGTHS = [1, 7, 8, 17, 23, 24, 25, 31, 32, 33, 100, 129]
LONG = [1000, 4096]
MORE = (
    "int4(group_size=16)",
    "k8v4(group_size=8)",
    "fp8(scales=dynamic)",
    "kivi4(group_size=8,residual=16)",
    "kivi2(group_size=8,residual=16)",
    "kivi2(group_size=8,residual=16)+skip(sliding_window)",
    "int4+skip(0,-1)",
    "quanto4(group_size=32)",
    "quanto2(group_size=32)",
    "hqq4(group_size=32)",
    "hqq8(group_size=32)",
)
FP32 = KVConfig("fp32", Plain("fp32"), Plain("fp32"))


@cache
def _model(kind: str) -> Any:
    return tiny_models.ALL[kind]()


@cache
def _shape(kind: str) -> ModelShape:
    return tiny_models.shape_of(_model(kind))


def _settings(kind: str) -> list[KVConfig]:
    """Presets without required arguments that the backend says it runs on this model."""
    settings = {}
    for name in registry.names("kv"):
        preset = registry.load("kv", name)
        if all(default is not None for default in (preset.parameters or {}).values()) or preset.example:
            setting = parse_one(preset.example or name)
            settings[setting.name] = setting
    settings |= {setting.name: setting for setting in map(parse_one, MORE)}
    runs = [
        kv
        for kv in settings.values()
        if kv.keys.element != "auto"
        and not _decides_what_is_kept(kv)
        and not PLUGIN.problems(PLUGIN.options(), kv, _shape(kind), Host())
    ]
    return [*runs, FP32]


def _decides_what_is_kept(kv: KVConfig) -> bool:
    """Or changes the model: such settings need more than their layers, and are in test_methods."""
    changes = kv.window, kv.kv_heads, kv.placement.offload, kv.memory
    return any(change is not None for change in changes) or kv.placement.context_parallel > 1


CASES = [(kind, kv) for kind in sorted(tiny_models.ALL) for kv in _settings(kind)]
PRESETS = _settings("llama")
cases = pytest.mark.parametrize(("kind", "kv"), CASES, ids=lambda value: getattr(value, "name", value))
presets = pytest.mark.parametrize("kv", PRESETS, ids=lambda kv: kv.name)


def test_the_backend_says_what_the_files_store() -> None:
    for name, pairs in FORMATS.items():
        assert registry.load("formats", name).stores == pairs
    assert set(FORMATS) == set(registry.names("formats"))
    own = {"bf16", "fp16", "int8", "int4", "k8v4", "fp8_e4m3", "fp8_e5m2", "kivi4", "kivi2", "int8+skip(0,-1)"}
    assert own <= {kv.name for kv in PRESETS}


@pytest.mark.parametrize(("module", "name"), [("optimum.quanto", "quanto4"), ("hqq", "hqq4")])
def test_quantizers_of_packages_are_covered_where_they_are_installed(module: str, name: str) -> None:
    if find_spec(module.partition(".")[0]) is None:
        pytest.skip(f"{module} is not installed: its presets are not tested here")
    assert f"{name}(group_size=32)" in {kv.name for kv in PRESETS}


def _filled(kind: str, kv: KVConfig, tokens: int, chunk: int = 20) -> Any:
    loaded = _model(kind)
    cache = build_cache(kv, _shape(kind))
    ids = torch.randint(3, 97, (tokens,), generator=torch.Generator().manual_seed(2)).tolist()
    with torch.inference_mode():
        logits = torch.empty(0)
        for start in range(0, tokens, chunk):
            piece = ids[start : start + chunk]
            logits = loaded.step(piece, list(range(start, start + len(piece))), cache)
    return loaded, cache, ids, logits


def _layers(kind: str, kv: KVConfig, tokens: int, chunk: int) -> list[StoredLayer]:
    """The cache's layers after random states of ``tokens``, without a model in between."""
    layers = build_cache(kv, _shape(kind)).layers
    states = torch.randn(2, 1, _shape(kind).layers[0].kv_heads, tokens, 32, generator=torch.Generator().manual_seed(4))
    for layer in layers:
        layer.reserve(tokens, 0)
        for start in range(0, tokens, chunk):
            layer.update(states[0, :, :, start : start + chunk], states[1, :, :, start : start + chunk])
    return layers


@cases
def test_measured_bytes_equal_the_formula(kind: str, kv: KVConfig) -> None:
    for tokens in [*LENGTHS, *(LONG if kind == "llama" else ())]:
        layers = _layers(kind, kv, tokens, chunk=20 if tokens < LONG[0] else tokens // 2 + 1)
        measured = sum(layer.logical_bytes(tokens) for layer in layers)
        assert measured == kv_bytes(_shape(kind), kv, tokens), tokens
        for layer in layers:
            assert layer.slots == (tokens if layer.window is None else min(tokens, layer.window))
            held = sum(layer.storages().values())
            # room was reserved for just these tokens: what is held is what is counted
            assert held == layer.logical_bytes(tokens) if layer.window is None else held >= layer.logical_bytes(tokens)


@presets
def test_bytes_after_generation_equal_the_formula(kv: KVConfig) -> None:
    """Token by token past the end of a residual: groups are packed as they fill."""
    layers = _layers("llama", kv, 30, chunk=30)
    generator = torch.Generator().manual_seed(5)
    for layer in layers:
        layer.reserve(55, 0)
    for tokens in range(31, 56):
        for layer in layers:
            layer.update(*torch.randn(2, 1, 2, 1, 32, generator=generator))
        assert sum(layer.logical_bytes(tokens) for layer in layers) == kv_bytes(_shape("llama"), kv, tokens)


@cases
def test_a_model_runs_on_it_and_windows_are_really_dropped_from_storage(kind: str, kv: KVConfig) -> None:
    """A sliced view would keep the whole tensor alive; the storage itself must be bounded."""
    _, short, _, _ = _filled(kind, kv, 60)
    _, long, _, logits = _filled(kind, kv, 200, chunk=60)
    assert bool(torch.isfinite(logits).all())
    for a, b in zip(short.layers, long.layers, strict=True):
        if a.window is not None:
            assert sum(b.storages().values()) == sum(a.storages().values())


@pytest.mark.parametrize("kv", _settings("gemma3"), ids=lambda kv: kv.name)
def test_a_window_layer_never_holds_more_than_window_and_chunk(kv: KVConfig) -> None:
    loaded = _model("gemma3")
    cache = build_cache(kv, _shape("gemma3"))
    for layer in cache.layers:
        layer.reserve(300, 50)
    with torch.inference_mode():
        for start in range(0, 300, 20):
            loaded.step([5] * 20, list(range(start, start + 20)), cache)
    for layer in cache.layers:
        if layer.window is not None:
            assert layer.peak_bytes // sum(side.slot_bytes() for side in layer._sides) == 24 + 20
        elif kv.keys.tokens_stand_alone:
            assert layer.peak_bytes // sum(side.slot_bytes() for side in layer._sides) == 350


@pytest.mark.parametrize("kind", sorted(tiny_models.ALL))
@pytest.mark.parametrize("name", ["fp32", "kivi2(8,16)", "k8v4"])
def test_full_precision_equals_the_library_cache(kind: str, name: str) -> None:
    """Also through a quantized setting that leaves every layer out."""
    kv = FP32
    if name != "fp32":
        count = len(_shape(kind).layers)
        kv = parse_one(f"{name}+skip({','.join(map(str, range(count)))})")
    loaded, cache, ids, logits = _filled(kind, kv, 77)
    with torch.inference_mode():
        plain = loaded.model(
            input_ids=torch.tensor([ids]), **{loaded.cache_argument: DynamicCache(config=loaded.model.config)}
        ).logits[0, -1]
    if kv is FP32:
        assert torch.allclose(logits[0], plain, atol=1e-3, rtol=1e-3)
        return
    _, _, _, native = _filled(kind, parse_one(_shape(kind).native_dtype), 77)
    assert torch.equal(logits, native), "every layer at 16 bit is the 16-bit cache itself"
    assert {layer.in_force()["kv.k_dtype"] for layer in cache.layers} == {_shape(kind).native_dtype}


@presets
def test_attention_reads_what_is_stored_already_in_prefill(kv: KVConfig) -> None:
    layer = build_cache(kv, _shape("llama")).layers[1]
    generator = torch.Generator().manual_seed(3)
    keys, values = (torch.randn(1, 2, 40, 32, generator=generator) for _ in range(2))
    read_keys, read_values = layer.update(keys, values)
    again = [side.read(torch.float32) for side in layer._sides]
    if kv.prefill_reads == "raw_chunk":
        # a package's quantizer comes after the pass that brought the context, as in transformers
        assert layer.reads_raw
        assert torch.allclose(read_keys, keys, atol=0.02)
        assert not torch.allclose(again[0], keys, atol=0.02)
        return
    assert torch.equal(read_keys, again[0])
    assert torch.equal(read_values, again[1])
    if kv.keys.element != "fp32":
        assert not torch.equal(read_keys, keys)


def _asked(loaded: Any, cache: Any, ids: list[int], at: int) -> torch.Tensor:
    """Logits of a question behind a context of ``at`` tokens, which stays as it was."""
    for layer in cache.layers:
        layer.hold = True
    logits = loaded.step(ids, list(range(at, at + len(ids))), cache)
    for layer in cache.layers:
        layer.hold = False
        layer.crop(-len(ids))
    return logits


@presets
def test_crop_and_fork_equal_a_cold_prefill(kv: KVConfig) -> None:
    loaded, cold, _, _ = _filled("llama", kv, 40, chunk=40)
    _, warm, _, _ = _filled("llama", kv, 40, chunk=40)
    with torch.inference_mode():
        _asked(loaded, warm, [5, 6, 7], 40)
        forked = type(warm)(layers=[layer.fork() for layer in warm.layers])
        expected = _asked(loaded, cold, [9, 10], 40)
        assert torch.equal(_asked(loaded, forked, [9, 10], 40), expected)
        # the fork shares nothing that changes: both go on from 40 tokens as contexts of their own
        loaded.step([11] * 20, list(range(40, 60)), forked)
        assert torch.equal(_asked(loaded, warm, [9, 10], 40), expected)
        assert [layer.seen for layer in forked.layers] == [60] * len(forked.layers)


@presets
def test_a_crop_is_exact_or_refused(kv: KVConfig) -> None:
    """Where a layer says that it can go back, what is read next is what a cold cache gives; else it says no."""
    states = torch.randn(2, 1, 2, 60, 32, generator=torch.Generator().manual_seed(6))
    refused = []
    for to in (0, 12, 15, 16, 24, 32, 39, 40):
        cold, warm = (build_cache(kv, _shape("llama")).layers[1] for _ in range(2))
        warm.update(*states[:, :, :, :40])
        if not warm.can_crop_to(to):
            refused.append(to)
            with pytest.raises(ValueError, match=f"cannot be cropped to {to}"):
                warm.crop(to - 40)
            continue
        warm.crop(to - 40)
        if to:
            cold.update(*states[:, :, :, :to])
        for side in (0, 1):
            pairs = [layer.update(*states[:, :, :, to : to + 20])[side] for layer in (warm.fork(), cold.fork())]
            assert torch.equal(*pairs), to
    assert not refused or (not kv.keys.tokens_stand_alone and 40 not in refused)


def test_kivi_keeps_what_a_group_does_not_hold() -> None:
    """Keys whole residuals, values all but the newest: read back exactly where nothing is quantized."""
    layer = build_cache(parse_one("kivi2(group_size=8,residual=16)"), _shape("llama")).layers[0]
    keys, values = torch.randn(2, 1, 2, 40, 32, generator=torch.Generator().manual_seed(3))
    read_keys, read_values = layer.update(keys, values)
    assert torch.equal(read_keys[:, :, 32:], keys[:, :, 32:].bfloat16().float())
    assert torch.equal(read_values[:, :, 24:], values[:, :, 24:].bfloat16().float())
    assert not torch.allclose(read_keys[:, :, 31], keys[:, :, 31], atol=0.05)
    assert not torch.allclose(read_values[:, :, 23], values[:, :, 23], atol=0.05)
    layer.hold = True
    layer.update(*torch.randn(2, 1, 2, 30, 32))
    layer.hold = False
    with pytest.raises(ValueError, match="must be cropped before context tokens are appended"):
        layer.update(keys, values)


def test_a_window_layer_that_dropped_tokens_cannot_be_cropped() -> None:
    _, cache, _, _ = _filled("mistral", parse_one("bf16"), 60)
    layer: StoredLayer = cache.layers[0]
    assert not layer.can_crop
    with pytest.raises(ValueError, match="cannot be cropped"):
        layer.crop(-1)


@presets
def test_what_is_read_depends_on_passes_only_where_a_layer_says_so(kv: KVConfig) -> None:
    """Then a longer context that begins like the last one is processed anew, not from where they part."""
    states = torch.randn(2, 1, 2, 50, 32, generator=torch.Generator().manual_seed(8))
    whole, apart = (build_cache(kv, _shape("llama")).layers[1] for _ in range(2))
    read = whole.update(*states)
    apart.update(*states[:, :, :, :20])
    again = apart.update(*states[:, :, :, 20:])
    if not whole.depends_on_passes:
        assert all(torch.equal(a, b) for a, b in zip(read, again, strict=True))
    assert whole.depends_on_passes == (not kv.keys.tokens_stand_alone)
