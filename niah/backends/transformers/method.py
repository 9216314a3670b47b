"""The interface of cache methods: ``Running`` executes a model under one KV setting, ``Method`` says for which.

A file in ``methods`` adds one by ``PLUGIN = Method(name, summary, applies, Class)``: the class builds the cache's
layers, processes tokens over them, and says whether questions may share one sequence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from transformers.cache_utils import Cache

from niah import registry
from niah.backends.transformers.cache.build import build_cache
from niah.backends.transformers.cache.layer import StoredLayer
from niah.backends.transformers.load import LoadedModel
from niah.backends.transformers.packed import View
from niah.errors import ConfigError
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.registry import Plugin


@dataclass(frozen=True)
class Setting:
    """Inputs of a method: model, KV setting and machine.

    Attributes:
        source: folder or hub id of the model, for methods that load it in other processes.
        threads: CPU threads that the session may use.
        load: options of the backend with which another process would load the same model.
    """

    loaded: LoadedModel
    kv: KVConfig
    shape: ModelShape
    source: str = ""
    threads: int = 1
    load: dict[str, Any] | None = None


class Running:
    """A loaded model under one KV setting. This one keeps what the model's own layers keep, in the stored format."""

    # whether questions behind one context may be put into one sequence; else each gets a fork of the context's cache
    packs = True

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.loaded, self.kv, self.shape = setting.loaded, setting.kv, setting.shape
        # settings in force recorded by changes of the model
        self.notes: dict[str, Any] = {}

    @property
    def threads(self) -> int:
        return self.setting.threads

    def attached(self) -> AbstractContextManager[Any]:
        """Whatever has to be in place while the setting runs, and undone afterwards."""
        return nullcontext()

    def cache(self) -> Cache:
        return build_cache(self.kv, self.shape)

    def layers(self, held: Cache) -> list[StoredLayer]:
        return [layer for layer in held.layers if isinstance(layer, StoredLayer)]

    def reserve(self, held: Cache, tokens: int, room: int) -> None:
        """Expect ``tokens`` of context, and ``room`` slots of questions behind it."""
        for layer in self.layers(held):
            layer.reserve(tokens, room)

    def tokens_per_call(self, held: Cache, tokens: int, chunk: int) -> int:
        """Prefill tokens that are processed in one call, for a context of ``tokens`` and chunks of ``chunk``."""
        # such a format shows its own numbers only behind the context's one pass
        return max(1, tokens) if any(layer.reads_raw for layer in self.layers(held)) else chunk

    def prefill(self, held: Cache, ids: Sequence[int], start: int) -> torch.Tensor:
        """Process the next tokens of one sequence, from position ``start`` on; logits ``[1, vocab]`` of the last."""
        return self.loaded.step(list(ids), list(range(start, start + len(ids))), held)

    def step(self, held: Cache, ids: list[int], positions: list[int], view: View, keep: list[int]) -> torch.Tensor:
        """Process tokens of several questions, of which each sees what ``view`` says; logits ``[len(keep), vocab]``."""
        return self.loaded.step(ids, positions, held, view, keep)

    def hold(self, held: Cache) -> None:
        """Stop dropping tokens: questions follow, and the mask decides what each may see."""
        for layer in self.layers(held):
            layer.hold = True

    def can_crop_to(self, held: Cache, tokens: int) -> bool:
        """Whether the cache can restore its state after ``tokens`` tokens exactly."""
        return all(layer.can_crop_to(tokens) for layer in self.layers(held))

    def can_go_on(self, held: Cache, tokens: int, to: int) -> bool:
        """Whether a context of ``to`` tokens may reuse the first ``tokens`` and equal one without reuse."""
        even = tokens == to or not any(layer.depends_on_passes for layer in self.layers(held))
        return even and self.can_crop_to(held, tokens)

    def crop(self, held: Cache, tokens: int) -> None:
        """Keep only the first ``tokens``."""
        for layer in self.layers(held):
            layer.hold = False
            layer.crop(tokens - layer.seen)

    def fork(self, held: Cache) -> Cache:
        """A copy without shared storage."""
        layers = [layer.fork() if isinstance(layer, StoredLayer) else layer for layer in held.layers]
        return type(held)(layers=layers)

    def logical_bytes(self, held: Cache, tokens: int) -> int:
        return sum(layer.logical_bytes(tokens) for layer in self.layers(held))

    def allocated_bytes(self, held: Cache) -> int:
        return sum(layer.peak_bytes for layer in self.layers(held))

    def effective(self, held: Cache) -> dict[str, Any]:
        """Settings in force, read back from the cache itself."""
        layers = self.layers(held)
        found: dict[str, Any] = {**_in_force(layers), **self.notes}
        kinds = [layer.kind for layer in self.shape.layers if layer.kind != "shared"]
        for kind in dict.fromkeys(kinds):
            own = [layer for layer, its in zip(layers, kinds, strict=True) if its == kind]
            size = sum(layer.logical_bytes(layer.seen) for layer in own)
            found[f"kv.{kind}_layers"] = f"{len(own)} with {size} B for {own[0].seen} tokens"
        if self.shape.is_mla:
            found["kv.latent"] = self._latent(layers[0])
        return found

    def _latent(self, layer: StoredLayer) -> str:
        """Whether this release of transformers stores the latent, or the keys and values that it expands to."""
        stored = layer.token_elements()
        latent = next(its.latent for its in self.shape.layers if its.latent)
        if stored == latent:
            return f"stored: {latent} elements a token"
        return f"expanded by this version of transformers: {stored} elements a token instead of {latent}"


def _in_force(layers: Sequence[StoredLayer]) -> dict[str, str]:
    """What is stored; where layers differ, each variant with its number of layers."""
    found = [layer.in_force() for layer in layers]
    merged: dict[str, str] = {}
    for key in dict.fromkeys(key for one in found for key in one):
        counts = Counter(one.get(key, "none") for one in found)
        several = ", ".join(f"{value} ({count} layers)" for value, count in counts.items())
        merged[key] = next(iter(counts)) if len(counts) == 1 else several
    return merged


@dataclass(frozen=True)
class Method(Plugin):
    """A way to keep a cache.

    Attributes:
        applies: whether a setting asks for it.
        running: what runs such settings.
        aspects: names of what a method that is a plugin does beyond niah's own; see ``Extra``.
    """

    kind: ClassVar[str] = "methods"
    applies: Callable[[KVConfig], bool]
    running: type[Running]
    aspects: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ModelChange(Plugin):
    """A change of the model itself for as long as a setting runs; methods and formats go on top.

    Attributes:
        applies: whether a setting asks for it.
        changed: context manager that changes and restores the loaded model; yields the settings in force to record.
        aspects: as of ``Method``.
    """

    kind: ClassVar[str] = "methods"
    applies: Callable[[KVConfig], bool]
    changed: Callable[[Setting], AbstractContextManager[dict[str, Any]]]
    aspects: frozenset[str] = frozenset()


def _methods() -> Iterator[Method | ModelChange]:
    # the aspects of one that cannot be loaded are not declared, so nothing asks for it
    yield from registry.load_all("methods")[0].values()


@contextmanager
def open_running(setting: Setting) -> Iterator[Running]:
    """The method of a setting, in place until the block ends.

    Raises:
        ConfigError: two methods apply that exclude each other.
        BackendUnavailable: the loaded model cannot do it.
    """
    applying = [method for method in _methods() if method.applies(setting.kv)]
    methods = [method for method in applying if isinstance(method, Method)]
    if len(methods) > 1:
        raise ConfigError(f"{setting.kv.name}: two ways to run the attention exclude each other; choose one.")
    with ExitStack() as stack:
        said: dict[str, Any] = {}
        for change in applying:
            if isinstance(change, ModelChange):
                said |= stack.enter_context(change.changed(setting))
        running = (methods[0].running if methods else Running)(setting)
        stack.enter_context(running.attached())
        running.notes = said
        yield running
