"""Infini-attention (arXiv:2404.07143): exact attention within a segment, a compressive memory for all segments before.

Per KV head, with σ = ELU + 1 (equations 3 to 5 and 10 of the paper)::

    A_mem = σ(Q) M / (σ(Q) z)          M += σ(K)ᵀ (V − σ(K) M / (σ(K) z))   delta rule
    A     = g · A_mem + (1 − g) · A_local    M += σ(K)ᵀ V                    linear rule
    z    += Σ σ(K)                       g = sigmoid(β)

Positions are taken out of the keys and queries that meet the memory, as the paper puts them in only afterwards. The
paper trains β and the model; here g is set by hand and nothing is trained. Where the memory is still empty the gate is
closed: there is nothing to read, and the formula would divide by zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.nn.functional import elu
from transformers.cache_utils import Cache

from niah.backends.transformers.attention import attention_method, grouped_sdpa
from niah.backends.transformers.cache.layer import Codec, StoredLayer
from niah.backends.transformers.cache.rotary import Rotary
from niah.backends.transformers.method import Method, Running, Setting
from niah.backends.transformers.packed import View
from niah.kv.config import KVConfig


class CompressiveMemory:
    """``M [batch, kv_heads, k_dim, v_dim]`` and ``z [batch, kv_heads, k_dim]`` in fp32."""

    def __init__(self, key: torch.Tensor, value: torch.Tensor) -> None:
        batch, heads, _, k_dim = key.shape
        self.matrix = torch.zeros(batch, heads, k_dim, value.shape[-1], device=key.device)
        self.norm = torch.zeros(batch, heads, k_dim, device=key.device)
        self.segments = 0

    def read(self, features: torch.Tensor) -> torch.Tensor:
        """``σ(Q) M / (σ(Q) z)`` for ``features [batch, kv_heads, tokens, k_dim]`` = σ(Q)."""
        divisor = (features @ self.norm.unsqueeze(-1)).clamp_min(torch.finfo(torch.float32).tiny)
        return features @ self.matrix / divisor

    def take(self, key: torch.Tensor, value: torch.Tensor, rule: str) -> None:
        """Add a segment of keys and values ``[batch, kv_heads, tokens, dim]``, positions taken out of the keys."""
        features, new = features_of(key), value.float()
        if rule == "delta" and self.segments:
            new = new - self.read(features)
        self.matrix += features.transpose(-1, -2) @ new
        self.norm += features.sum(dim=-2)
        self.segments += 1

    def nbytes(self) -> int:
        return self.matrix.untyped_storage().nbytes() + self.norm.untyped_storage().nbytes()

    def fork(self) -> CompressiveMemory:
        twin = CompressiveMemory.__new__(CompressiveMemory)
        twin.matrix, twin.norm, twin.segments = self.matrix.clone(), self.norm.clone(), self.segments
        return twin


def features_of(states: torch.Tensor) -> torch.Tensor:
    """σ = ELU + 1, in fp32."""
    return elu(states.float()) + 1


class InfiniLayer(StoredLayer):
    """One segment in the stored format, used again for every segment, and the memory."""

    def __init__(self, keys: Codec, values: Codec, segment: int) -> None:
        super().__init__(keys, values)
        self.segment = segment
        self.memory: CompressiveMemory | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Pass the new states on: attention hands them back by segments, through ``append``."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.memory = CompressiveMemory(key_states, value_states)
        return key_states, value_states

    def append(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Store states that lie within the segment; returns the whole segment so far."""
        keys, values = self._sides
        keys.append(key, self.reserve_slots)
        values.append(value, self.reserve_slots)
        self.seen += key.shape[2]
        return keys.read(key.dtype), values.read(value.dtype)

    def end_segment(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of the full segment; their slots are free from now on."""
        keys, values = (side.read(torch.float32) for side in self._sides)
        for side in self._sides:
            side.crop(0)
        return keys, values

    def kept(self, tokens: int) -> int:
        return min(tokens, self.segment)

    def reserve(self, tokens: int, room: int) -> None:
        self.reserve_slots = min(tokens + room, self.segment)

    def logical_bytes(self, tokens: int) -> int:
        return super().logical_bytes(tokens) + (self.memory.nbytes() if self.memory else 0)

    @property
    def peak_bytes(self) -> int:
        return super().peak_bytes + (self.memory.nbytes() if self.memory else 0)

    @property
    def can_crop(self) -> bool:
        return False

    def can_crop_to(self, tokens: int) -> bool:
        return tokens == self.seen

    def crop(self, tokens_to_remove: int) -> None:
        if tokens_to_remove:
            raise ValueError("what has gone into a compressive memory cannot be taken out again")

    def storages(self) -> dict[int, int]:
        found = super().storages()
        if self.memory:
            for part in (self.memory.matrix, self.memory.norm):
                found[part.data_ptr()] = part.untyped_storage().nbytes()
        return found

    def reset(self) -> None:
        super().reset()
        self.memory = None

    def fork(self) -> StoredLayer:
        twin = super().fork()
        if isinstance(twin, InfiniLayer) and twin.memory:
            twin.memory = twin.memory.fork()
        return twin


class Infini(Running):
    """Runs Infini-attention; segments do not depend on the prefill chunk, and a question changes what is kept."""

    packs = False

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._rotary = Rotary(self.loaded.model)
        self._held: Cache | None = None
        if self.kv.memory is None:
            raise ValueError(f"{self.kv.name} asks for no compressive memory")
        self._memory = self.kv.memory

    def attached(self) -> AbstractContextManager[Any]:
        return attention_method(self.loaded.model, self._attend)

    def cache(self) -> Cache:
        plain = super().cache()
        layers = [InfiniLayer(*layer.codecs, self._memory.segment) for layer in self.layers(plain)]
        return Cache(layers=layers)

    def prefill(self, held: Cache, ids: Sequence[int], start: int) -> torch.Tensor:
        self._held = held
        return super().prefill(held, ids, start)

    def step(self, held: Cache, ids: list[int], positions: list[int], view: View, keep: list[int]) -> torch.Tensor:
        raise NotImplementedError("questions behind a compressive memory are answered one at a time")

    def _attend(
        self,
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        _mask: torch.Tensor | None,
        **rest: Any,
    ) -> tuple[torch.Tensor, None]:
        """``query [b, heads, n, d]``, the new ``key, value [b, kv_heads, n, d]``; returns ``[b, n, heads, d]``."""
        if self._held is None:
            raise RuntimeError("attention was called outside prefill")
        layer: InfiniLayer = self._held.layers[module.layer_idx]
        out, first = [], 0
        while first < query.shape[2]:
            if layer.slots == layer.segment:
                self._end_segment(layer, module)
            last = min(query.shape[2], first + layer.segment - layer.slots)
            piece = slice(first, last)
            out.append(self._piece(layer, module, query[:, :, piece], key[:, :, piece], value[:, :, piece], **rest))
            first = last
        return torch.cat(out, dim=1), None

    def _end_segment(self, layer: InfiniLayer, module: Any) -> None:
        positions = torch.arange(layer.seen - layer.slots, layer.seen, device=layer.device)
        keys, values = layer.end_segment()
        if layer.memory is not None:
            layer.memory.take(self._rotary.shift(keys, -positions, module), values, self._memory.update)

    def _piece(
        self, layer: InfiniLayer, module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **rest: Any
    ) -> torch.Tensor:
        count, before = query.shape[2], layer.slots
        positions = torch.arange(layer.seen, layer.seen + count, device=query.device)
        keys, values = layer.append(key, value)
        mask = torch.ones(count, before + count, dtype=torch.bool, device=query.device).tril(before)
        local, _ = grouped_sdpa(module, query, keys, values, mask[None, None], **rest)
        if layer.memory is None or not layer.memory.segments or not self._memory.gate:
            return local
        features = features_of(self._rotary.shift(query, -positions, module))
        batch, heads, _, dim = features.shape
        grouped = features.reshape(batch, keys.shape[1], -1, dim)  # heads of one KV head are neighbors
        read = layer.memory.read(grouped).view(batch, heads, count, -1).transpose(1, 2)
        gate = self._memory.gate
        return (gate * read + (1 - gate) * local.float()).to(local.dtype)

    def effective(self, held: Cache) -> dict[str, Any]:
        return {
            **super().effective(held),
            "kv.segment": self._memory.segment,
            "kv.memory": f"compressive, {self._memory.update} rule, gate {self._memory.gate:g}, fp32",
            "kv.trained": "no: mechanism and memory, not trained",
        }


def _applies(kv: KVConfig) -> bool:
    return kv.memory is not None


PLUGIN = Method("infini", "a compressive memory and a local segment", _applies, Infini)
