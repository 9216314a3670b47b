"""``Rank``, one rank of ring attention: its cache layers, its part of the sequence, attention merged over all ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from transformers.cache_utils import Cache

from niah.backends.transformers.cache.build import build_cache
from niah.backends.transformers.cache.layer import Codec, StoredLayer
from niah.backends.transformers.load import LoadedModel
from niah.backends.transformers.ring.partial import Partial, merge, partial_attention
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape


class RingLayer(StoredLayer):
    """What one rank stores of a layer. ``seen`` counts the tokens of all ranks."""

    def __init__(self, keys: Codec, values: Codec, step: _Step) -> None:
        super().__init__(keys, values)
        self.step = step

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store the new states that are this rank's; returns all that this rank has."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.seen = self.step.total
        mine = self.step.mine.to(key_states.device)
        if len(mine):
            for side, states in zip(self._sides, (key_states, value_states), strict=True):
                side.append(states[:, :, mine], self.reserve_slots)
        if not self.slots:
            return key_states[:, :, :0], value_states[:, :, :0]
        keys, values = self._sides
        return keys.read(key_states.dtype), values.read(value_states.dtype)

    @property
    def can_crop(self) -> bool:
        return True

    def can_crop_to(self, tokens: int) -> bool:
        return tokens <= self.seen

    def cut(self, tokens: int, slots: int) -> None:
        """Keep only the first ``tokens`` of the sequence, of which ``slots`` are on this rank."""
        self.seen = tokens
        for side in self._sides:
            side.crop(slots)


@dataclass
class _Step:
    """The pass that is running: which of its tokens this rank keeps, and where all keys are.

    Attributes:
        slots: for each rank the slot numbers ``[keys]`` of what it stores, the new tokens among them.
        seen: boolean ``[queries, all slots]``; None while the ring turns, where a token sees all slots up to its own.
        queries: slot numbers of this rank's tokens.
    """

    total: int = 0
    mine: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    slots: list[torch.Tensor] = field(default_factory=list)
    seen: torch.Tensor | None = None
    queries: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))


class RingCache(Cache):  # type: ignore[misc]
    """A rank's layers, and the rank of every slot of the sequence."""

    number = 0
    owners: np.ndarray[Any, np.dtype[np.int16]] = np.empty(0, dtype=np.int16)


class Rank:
    """One rank: runs the commands that all ranks get in the same order."""

    def __init__(self, loaded: LoadedModel, kv: KVConfig, shape: ModelShape, rank: int, ranks: int) -> None:
        self.loaded, self.kv, self.shape, self.rank, self.ranks = loaded, kv, shape, rank, ranks
        self.held: dict[int, Any] = {}
        self._step = _Step()

    def open(self, number: int) -> RingCache:
        plain: list[StoredLayer] = build_cache(self.kv, self.shape).layers
        layers = [RingLayer(*layer.codecs, self._step) for layer in plain]
        return self._keep(RingCache(layers=layers), number, np.empty(0, dtype=np.int16))

    def fork(self, number: int, into: int) -> RingCache:
        source = self.held[number]
        return self._keep(RingCache(layers=[layer.fork() for layer in source.layers]), into, source.owners.copy())

    def _keep(self, held: RingCache, number: int, owners: Any) -> RingCache:
        held.number, held.owners = number, owners
        self.held[number] = held
        return held

    def drop(self, number: int) -> None:
        self.held.pop(number, None)

    def reserve(self, number: int, tokens: int, room: int) -> None:
        for layer in self.held[number].layers:
            layer.reserve(-(-tokens // self.ranks), -(-room // self.ranks) + 1)

    def crop(self, number: int, tokens: int) -> None:
        held = self.held[number]
        held.owners = held.owners[:tokens]
        for layer in held.layers:
            layer.cut(tokens, int((held.owners == self.rank).sum()))

    def split(self, number: int, ids: list[int], start: int) -> None:
        """Process this rank's chunk of a prefill call that begins at ``start``; every chunk is of one size."""
        held, count = self.held[number], len(ids)
        held.owners = np.concatenate((held.owners, np.repeat(np.arange(self.ranks, dtype=np.int16), count)))
        first = start + self.rank * count
        queries = torch.arange(first, first + count, device=self.loaded.device)
        self._begin(held, torch.arange(count), queries, None)
        self.loaded.step(ids, list(range(first, first + count)), held)

    def together(
        self, number: int, ids: list[int], positions: list[int], keep: list[int], seen: torch.Tensor
    ) -> torch.Tensor:
        """Process tokens that every rank has; ``seen [tokens, slots]`` says what each may see."""
        held = self.held[number]
        counts = [int((held.owners == rank).sum()) for rank in range(self.ranks)]
        owners = []
        for _ in ids:
            owners.append(counts.index(min(counts)))
            counts[owners[-1]] += 1
        held.owners = np.concatenate((held.owners, np.array(owners, dtype=np.int16)))
        mine = torch.tensor([i for i, owner in enumerate(owners) if owner == self.rank], dtype=torch.long)
        self._begin(held, mine, torch.empty(0, dtype=torch.long), seen)
        return self.loaded.step(ids, positions, held, None, keep)

    def _begin(self, held: Any, mine: torch.Tensor, queries: torch.Tensor, seen: torch.Tensor | None) -> None:
        step, device = self._step, self.loaded.device
        step.total, step.mine, step.queries, step.seen = len(held.owners), mine, queries, seen
        step.slots = [torch.from_numpy(np.flatnonzero(held.owners == r)).to(device) for r in range(self.ranks)]

    def bytes(self, number: int) -> dict[str, int]:
        """What this rank stores now, and the most that its storages have held."""
        layers = self.held[number].layers
        stored = sum(layer.slots * layer.logical_bytes(1) for layer in layers)
        return {"stored": stored, "peak": sum(layer.peak_bytes for layer in layers)}

    def attend(
        self,
        _module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        _mask: torch.Tensor | None,
        *,
        scaling: float | None = None,
        **_rest: Any,
    ) -> tuple[torch.Tensor, None]:
        """Attention of this rank's queries over the keys of all ranks; ``key, value`` are this rank's."""
        scale = scaling if scaling is not None else float(query.shape[-1] ** -0.5)
        turn = self._gather if self._step.seen is not None else self._turn
        out = turn(query, key, value, scale).out
        return out.to(query.dtype).transpose(1, 2).contiguous(), None

    def _gather(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float) -> Partial:
        seen = self._step.seen
        if seen is None:
            raise RuntimeError("no mask for a step of all ranks")
        own = partial_attention(query, key, value, seen[:, self._step.slots[self.rank]], scale).packed()
        parts = [torch.empty_like(own) for _ in range(self.ranks)]
        dist.all_gather(parts, own)
        return merge([Partial.unpacked(part) for part in parts])

    def _turn(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float) -> Partial:
        parts = []
        block: tuple[torch.Tensor, ...] = (key.contiguous(), value.contiguous())
        for turn in range(self.ranks):
            owner = (self.rank - turn) % self.ranks
            arriving = self._pass_on(block, (owner - 1) % self.ranks) if turn + 1 < self.ranks else None
            slots = self._step.slots[owner]
            # a block that lies wholly behind the queries travels on without being read
            if len(slots) and bool(slots[0] <= self._step.queries[-1]):
                seen = slots[None] <= self._step.queries[:, None]
                parts.append(partial_attention(query, block[0], block[1], seen, scale))
            if arriving is not None:
                requests, block = arriving
                for request in requests:
                    request.wait()
        return merge(parts)

    def _pass_on(self, block: tuple[torch.Tensor, ...], arriving: int) -> tuple[list[Any], tuple[torch.Tensor, ...]]:
        """Send a block to the next rank while the block of rank ``arriving`` comes from the one before."""
        count = len(self._step.slots[arriving])
        fresh = tuple(part.new_empty(*part.shape[:2], count, part.shape[3]) for part in block)
        operations = []
        for leaving, coming in zip(block, fresh, strict=True):
            if leaving.numel():
                operations.append(dist.P2POp(dist.isend, leaving.view(torch.uint8), (self.rank + 1) % self.ranks))
            if coming.numel():
                operations.append(dist.P2POp(dist.irecv, coming.view(torch.uint8), (self.rank - 1) % self.ranks))
        return dist.batch_isend_irecv(operations) if operations else [], fresh
