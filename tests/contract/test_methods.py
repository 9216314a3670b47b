"""Every setting that changes what is kept or where: bytes by formula, what each token sees, forks, packed questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import DynamicCache

from niah import registry
from niah.backends.transformers.cache.layer import StoredLayer
from niah.backends.transformers.check_structure import ROTATABLE
from niah.backends.transformers.forked import answer_forked
from niah.backends.transformers.formats.plain import PlainCodec
from niah.backends.transformers.load import LoadedModel
from niah.backends.transformers.method import Running, Setting, open_running
from niah.backends.transformers.packed import Question, answer_packed
from niah.backends.transformers.plugin import PLUGIN
from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from niah.kv.grammar import parse_one
from niah.kv.memory.totals import kv_bytes
from niah.types import Host
from tests.helpers import tiny_models

# sinks + window, and the segment: lengths around them are where mistakes show
KEPT = 30
SETTINGS = [
    "window(30)",
    "streaming(sinks=4,window=26)",
    "streaming(sinks=4,window=26,positions=original)",
    "gqa(1)",
    "mqa",
    "infini(30)",
    "infini(30,update=linear,gate=0.2)",
    "offload",
    "int8+window(30)",
    "gqa(1)+int8+streaming(sinks=4,window=26)",
]
KINDS = ["llama", "mistral", "gemma3", "deepseek", "gpt_oss"]
GPU = Host(device="cuda", cores=8)


def _full(text: str) -> KVConfig:
    """The setting with unquantized sides in fp32, so that only the method makes a difference."""
    kv = parse_one(text)
    return replace(kv, keys=Plain("fp32"), values=Plain("fp32")) if kv.keys == Plain("bf16") else kv


def _runs(kind: str, text: str) -> bool:
    shape = tiny_models.shape_of(getattr(tiny_models, kind)())
    return not PLUGIN.problems(PLUGIN.options(), parse_one(text), shape, GPU)


PAIRS = [(kind, text) for kind in KINDS for text in SETTINGS if _runs(kind, text)]


@contextmanager
def running(loaded: LoadedModel, kv: KVConfig) -> Iterator[Running]:
    with torch.inference_mode(), open_running(Setting(loaded, kv, tiny_models.shape_of(loaded))) as run:
        yield run


def ids_of(count: int, seed: int = 2) -> list[int]:
    return torch.randint(3, 97, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def fill(run: Running, ids: list[int], chunk: int = 20) -> Any:
    """A cache with ``ids`` processed, and the logits ``[vocab]`` of the last."""
    held, logits = run.cache(), torch.empty(0)
    run.reserve(held, len(ids), 0)
    for start in range(0, len(ids), chunk):
        logits = run.prefill(held, ids[start : start + chunk], start)
    return held, logits[-1]


def test_every_structural_preset_is_here() -> None:
    """Presets that do not change the stored type alone; the ring has a file of its own."""
    found = set()
    for name in registry.names("kv"):
        preset = registry.load("kv", name)
        required = any(default is None for default in (preset.parameters or {}).values())
        kv = parse_one(preset.example if preset.example else name) if required or not preset.rest else None
        if kv and (kv.window or kv.kv_heads or kv.memory or kv.placement.offload):
            found.add(name)
    assert found == {"window", "streaming", "gqa", "mqa", "infini", "offload"}
    assert {text for _, text in PAIRS} == set(SETTINGS), "each runs on some tiny model"


@pytest.mark.parametrize(("kind", "text"), PAIRS)
def test_measured_bytes_equal_the_formula(kind: str, text: str) -> None:
    loaded = getattr(tiny_models, kind)()
    shape = tiny_models.shape_of(loaded)
    with running(loaded, parse_one(text)) as run:
        for tokens in (1, KEPT - 1, KEPT, KEPT + 1, 300):
            held, _ = fill(run, ids_of(tokens))
            assert run.logical_bytes(held, tokens) == kv_bytes(shape, parse_one(text), tokens)
            storages = [size for layer in run.layers(held) for size in layer.storages().values()]
            assert sum(storages) >= run.logical_bytes(held, tokens)


@pytest.mark.parametrize("text", SETTINGS)
def test_bytes_at_a_thousand_tokens_and_after_generation(text: str) -> None:
    loaded = tiny_models.llama()
    with running(loaded, parse_one(text)) as run:
        held, logits = fill(run, ids_of(1000), chunk=128)
        for at in range(1000, 1008):
            logits = run.prefill(held, [int(logits.argmax())], at)[-1]
        for tokens in (1000, 1008):
            assert run.logical_bytes(held, tokens) == kv_bytes(tiny_models.shape_of(loaded), parse_one(text), tokens)


@pytest.mark.proof(one_in=2)
@pytest.mark.parametrize(("kind", "text"), PAIRS)
def test_the_prefill_chunk_changes_nothing(kind: str, text: str) -> None:
    loaded = getattr(tiny_models, kind)()
    with running(loaded, _full(text)) as run:
        _, one = fill(run, ids_of(90), chunk=1)
        _, many = fill(run, ids_of(90), chunk=33)
    # a value on the edge between two codes may fall on either side of it
    assert torch.allclose(one, many, atol=0.05 if "int8" in text else 1e-4)


@pytest.mark.proof(one_in=2)
@pytest.mark.parametrize(("kind", "text"), PAIRS)
def test_what_is_bounded_stays_bounded_during_prefill(kind: str, text: str) -> None:
    """Most slots ever held by a layer: what it keeps, and one chunk."""
    loaded, kv = getattr(tiny_models, kind)(), parse_one(text)
    with running(loaded, kv) as run:
        short, _ = fill(run, ids_of(3 * KEPT))
        long, _ = fill(run, ids_of(20 * KEPT))
        bounded = kv.window is not None or kv.memory is not None
        for a, b, layer in zip(run.layers(short), run.layers(long), run.shape.layers, strict=True):
            if bounded or layer.window is not None:
                assert b.peak_bytes == a.peak_bytes
                assert b.slots <= KEPT
            else:
                assert b.peak_bytes > a.peak_bytes


@pytest.mark.parametrize(("kind", "text"), PAIRS)
def test_fork_and_crop_equal_a_cold_prefill(kind: str, text: str) -> None:
    loaded = getattr(tiny_models, kind)()
    ids, more, other = ids_of(50), ids_of(5, seed=3), ids_of(6, seed=4)
    with running(loaded, _full(text)) as run:
        _, expected = fill(run, [*ids, *other], chunk=56)
        held, _ = fill(run, ids)
        for _ in range(2):
            copy = run.fork(held)
            assert run.allocated_bytes(copy) >= run.logical_bytes(copy, 50)
            run.prefill(copy, more, 50)
            assert torch.allclose(run.prefill(run.fork(held), other, 50)[-1], expected, atol=1e-4)
        if all(layer.can_crop for layer in run.layers(held)):
            run.prefill(held, more, 50)
            run.crop(held, 50)
        assert torch.allclose(run.prefill(held, other, 50)[-1], expected, atol=1e-4)


def questions(seed: int) -> list[Question]:
    return [
        Question(ids_of(size, seed + i), ids_of(4, seed + 10 + i), 8, lambda _: "")
        for i, size in enumerate((5, 1, 9, 3))
    ]


def alone(run: Running, context: list[int], question: Question, ends: frozenset[int]) -> Question:
    """The question answered in a sequence of its own, token by token, nothing held and no draft."""
    twin = Question(question.tail, question.gold, question.budget, question.finished)
    held, _ = fill(run, context, chunk=7)
    answer_forked(run, held, twin, len(context), ends)
    return twin


@pytest.mark.parametrize(("kind", "text"), [p for p in PAIRS if "int8" not in p[1] and "infini" not in p[1]])
@pytest.mark.proof(one_in=4)
@pytest.mark.parametrize("length", [2, KEPT, 75])
def test_packed_questions_get_what_each_gets_alone(kind: str, text: str, length: int) -> None:
    loaded = getattr(tiny_models, kind)()
    with running(loaded, _full(text)) as run:
        assert run.packs
        context, group = ids_of(length), questions(length)
        held, _ = fill(run, context)
        run.hold(held)
        answer_packed(
            lambda ids, positions, view, keep: run.step(held, ids, positions, view, keep),
            group,
            length,
            loaded.ends,
            loaded.device,
        )
        for question in group:
            expected = alone(run, context, question, loaded.ends)
            assert question.output == expected.output
            assert question.logprob == pytest.approx(expected.logprob, abs=1e-3)


class _Tagged:
    """A codec that stores each token's position beside it, to see later what a layer has kept."""

    element = "tagged"

    def __init__(self, codec: Any) -> None:
        self.codec, self.next = codec, 0

    def encode(self, states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        tags = torch.arange(self.next, self.next + states.shape[2])[None, None, :, None]
        self.next += states.shape[2]
        return (*self.codec.encode(states), tags.expand(*states.shape[:2], -1, 1))

    def decode(self, parts: tuple[torch.Tensor, ...], dtype: torch.dtype) -> torch.Tensor:
        return self.codec.decode(parts[:-1], dtype)


def _positions(layer: StoredLayer) -> set[int]:
    side = layer._sides[0]
    return set(side.buffers[-1][0, 0, : side.used, 0].tolist())


@pytest.mark.parametrize("kind", ["llama", "mistral", "gemma3"])
@pytest.mark.parametrize(("text", "sinks"), [("window(30)", 0), ("streaming(sinks=4,window=26)", 4)])
def test_a_needle_outside_is_in_no_layers_kept_set(kind: str, text: str, sinks: int) -> None:
    loaded = getattr(tiny_models, kind)()
    with running(loaded, _full(text)) as run:
        held = run.cache()
        for layer in run.layers(held):
            layer.wrap(_Tagged)
        ids = ids_of(200)
        for start in range(0, 200, 20):
            run.prefill(held, ids[start : start + 20], start)
        needle = set(range(100, 110))
        for layer, shape in zip(run.layers(held), run.shape.layers, strict=True):
            own = shape.window
            newest = own if own is not None and own <= KEPT else KEPT - sinks
            first = 0 if own is not None and own <= KEPT else sinks
            assert _positions(layer) == set(range(first)) | set(range(200 - newest, 200))
            assert not needle & _positions(layer)


def test_a_token_outside_the_window_is_not_seen_by_one_layer() -> None:
    """With a single layer nothing passes on: changing a dropped token leaves the logits as they are."""
    loaded = tiny_models.one_layer()
    ids, changed = ids_of(80), ids_of(80)
    changed[20:40] = ids_of(20, seed=9)
    for text in ("window(30)", "streaming(sinks=4,window=26)"):
        with running(loaded, _full(text)) as run:
            assert torch.equal(fill(run, ids)[1], fill(run, changed)[1])
    with running(loaded, _full("bf16")) as run:
        assert not torch.allclose(fill(run, ids)[1], fill(run, changed)[1], atol=1e-3)


class _Renumbered(StoredLayer):
    """StreamingLLM as its paper says it: keys turned down one position whenever the oldest of the window goes."""

    def __init__(self, sinks: int, window: int, turn: Any) -> None:
        codec = PlainCodec(torch.float32)
        super().__init__(codec, codec)
        self.first, self.limit, self.turn = sinks, sinks + window, turn
        self.keys = self.values = torch.empty(0)

    def update(self, key_states: Any, value_states: Any, *_args: Any, **_kwargs: Any) -> Any:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states[:, :, :0], value_states[:, :, :0]
        if self.keys.shape[2] == self.limit:
            moved = self.turn(self.keys[:, :, self.first + 1 :])
            self.keys = torch.cat((self.keys[:, :, : self.first], moved), dim=2)
            self.values = torch.cat((self.values[:, :, : self.first], self.values[:, :, self.first + 1 :]), dim=2)
        self.keys = torch.cat((self.keys, key_states), dim=2)
        self.values = torch.cat((self.values, value_states), dim=2)
        self.seen += 1
        return self.keys, self.values

    @property
    def slots(self) -> int:
        return self.keys.shape[2] if self.is_initialized else 0


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_streaming_equals_keys_renumbered_one_by_one(kind: str) -> None:
    """Another way to the same numbers: token by token, the query at the cache's end, all keys turned at each step."""
    from transformers.cache_utils import Cache

    from niah.backends.transformers.cache.rotary import Rotary

    loaded = tiny_models.llama() if kind == "llama" else tiny_models.family(kind)
    rotary, ids, sinks, window = Rotary(loaded.model), ids_of(70), 4, 16
    attention = next(m for m in loaded.model.modules() if hasattr(m, "q_proj"))

    def turn(keys: torch.Tensor) -> torch.Tensor:
        return rotary.shift(keys, torch.full((keys.shape[2],), -1), attention)

    with torch.inference_mode():
        layers = [_Renumbered(sinks, window, turn) for _ in tiny_models.shape_of(loaded).layers]
        naive = Cache(layers=layers)
        for at, token in enumerate(ids):
            kept = min(at + 1, sinks + window)
            seen = torch.ones(1, kept, dtype=torch.bool)

            def all_kept(_: Any, seen: torch.Tensor = seen) -> torch.Tensor:
                return seen

            expected = loaded.step([token], [min(at, sinks + window - 1)], naive, all_kept)[-1]
    with running(loaded, _full(f"streaming(sinks={sinks},window={window})")) as run:
        _, logits = fill(run, ids, chunk=23)
    assert torch.allclose(logits, expected, atol=1e-3)
    with running(loaded, _full(f"streaming(sinks={sinks},window={window},positions=original)")) as run:
        _, original = fill(run, ids, chunk=23)
    assert not torch.allclose(original, expected, atol=1e-2), "where positions are counted must matter"


@pytest.mark.parametrize("model_type", sorted(ROTATABLE))
def test_families_whose_positions_can_be_turned(model_type: str) -> None:
    loaded = tiny_models.family(model_type)
    with running(loaded, _full("streaming(sinks=4,window=26)")) as run:
        assert torch.allclose(fill(run, ids_of(60), chunk=1)[1], fill(run, ids_of(60), chunk=19)[1], atol=1e-4)


@pytest.mark.parametrize("kind", ["llama", "mistral", "gemma3", "deepseek", "gpt_oss"])
def test_own_layers_at_full_precision_equal_the_library_cache(kind: str) -> None:
    loaded = getattr(tiny_models, kind)()
    with running(loaded, _full("bf16")) as run:
        _, logits = fill(run, ids_of(77))
        cache = DynamicCache(config=loaded.model.config)
        plain = loaded.model(input_ids=torch.tensor([ids_of(77)]), **{loaded.cache_argument: cache}).logits[0, -1]
    assert torch.allclose(logits, plain, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("text", ["window(200)", "streaming(sinks=4,window=196)", "infini(200)", "gqa(2)", "offload"])
def test_a_setting_that_has_nothing_to_do_changes_nothing(text: str) -> None:
    loaded = tiny_models.llama()
    with running(loaded, _full("bf16")) as run:
        _, plain = fill(run, ids_of(150))
    with running(loaded, _full(text)) as run:
        _, logits = fill(run, ids_of(150))
    assert torch.allclose(logits, plain, atol=1e-4)


def test_the_model_is_as_it_was_after_every_setting() -> None:
    loaded = tiny_models.llama()
    with running(loaded, _full("bf16")) as run:
        _, before = fill(run, ids_of(40))
    for text in SETTINGS:
        with running(loaded, _full(text)) as run:
            fill(run, ids_of(40))
        with running(loaded, _full("bf16")) as run:
            assert torch.equal(fill(run, ids_of(40))[1], before), text


@pytest.mark.parametrize("text", ["bf16", "window(512)", "streaming(sinks=4,window=512)", "gqa(1)", "infini(512)"])
def test_bytes_of_a_cache_of_128k_tokens_really_allocated(text: str) -> None:
    """131,072 tokens of random keys and values into every layer; the model itself would take minutes for them."""
    loaded, kv, tokens, chunk = tiny_models.llama(torch.bfloat16), parse_one(text), 131_072, 8_192
    shape = tiny_models.shape_of(loaded)
    with running(loaded, kv) as run:
        held = run.cache()
        run.reserve(held, tokens, 0)
        heads = kv.kv_heads or 2
        states = torch.randn(1, heads, chunk, 32).bfloat16()
        for layer in run.layers(held):
            for _ in range(tokens // chunk):
                keys, values = layer.update(states, states)
                if kv.memory is not None:
                    for first in range(0, chunk, 512):
                        layer.append(keys[:, :, first : first + 512], values[:, :, first : first + 512])
                        layer.end_segment()
            assert layer.seen == tokens
        assert run.logical_bytes(held, tokens) == kv_bytes(shape, kv, tokens)
        really = sum(size for layer in run.layers(held) for size in layer.storages().values())
        assert really == kv_bytes(shape, kv, tokens)
