"""Ring attention (arXiv:2310.01889): the sequence is divided among processes, each with the whole model.

A prefill call of n chunks gives each of the n ranks one chunk. In every layer the blocks of keys and values pass once
round the ring, each rank attends to the block that it holds at the moment, and partial results merge by log-sum-exp.
Few tokens (questions, decoding) are processed by all ranks alike: each attends to its own keys, and the partial results
are gathered. A new token's keys stay with the rank that has fewest. So each rank stores total / n, and all answers are
those of one rank up to the order of additions.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers.cache_utils import Cache

from niah.backends.transformers.attention import attention_method
from niah.backends.transformers.length_dependent_rope import LengthDependentRope
from niah.backends.transformers.method import Method, Running, Setting
from niah.backends.transformers.packed import View
from niah.backends.transformers.ring.group import RingGroup
from niah.backends.transformers.ring.rank import Rank, RingCache
from niah.errors import BackendUnavailable
from niah.kv.config import KVConfig


class Ring(Running):
    """Rank 0 in this process; the others are child processes that end with it."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if LengthDependentRope(self.loaded.model):
            raise BackendUnavailable(
                f"{self.kv.name}: the rotary frequencies of this model depend on the length of the whole sequence, and "
                "each rank sees a part of it. Use a setting without a ring."
            )
        self.ranks = self.kv.placement.context_parallel
        self._own = Rank(self.loaded, self.kv, self.shape, 0, self.ranks)
        self._group = RingGroup(setting, self.ranks)
        self._numbers = itertools.count(1)
        self._dropped: list[int] = []

    @property
    def threads(self) -> int:
        return max(1, self.setting.threads // self.ranks)

    @contextmanager
    def attached(self) -> Iterator[None]:
        self._group.check()
        with attention_method(self.loaded.model, self._own.attend):
            try:
                yield
            finally:
                self._group.close()

    def cache(self) -> Cache:
        self._group.ensure()
        number = next(self._numbers)
        with self._on_all_ranks("open", number=number):
            return self._watched(self._own.open(number))

    def fork(self, held: Cache) -> Cache:
        into = next(self._numbers)
        with self._on_all_ranks("fork", number=held.number, into=into):
            return self._watched(self._own.fork(held.number, into))

    def _watched(self, held: RingCache) -> Cache:
        """The caller's handle: when it goes, all ranks let go of the cache."""
        handle = RingCache(layers=held.layers)
        handle.number = held.number
        weakref.finalize(handle, self._dropped.append, held.number)
        return handle

    @contextmanager
    def _on_all_ranks(self, what: str, **arguments: Any) -> Iterator[None]:
        """Send a command to the other ranks, and run this rank's part of it within the block."""
        with self._group.failing_together():
            while self._dropped:
                number = self._dropped.pop()
                self._own.drop(number)
                self._group.send("drop", number=number)
            self._group.send(what, **arguments)
            yield

    def tokens_per_call(self, held: Cache, tokens: int, chunk: int) -> int:  # noqa: ARG002
        return chunk * self.ranks

    def reserve(self, held: Cache, tokens: int, room: int) -> None:
        with self._on_all_ranks("reserve", number=held.number, tokens=tokens, room=room):
            self._own.reserve(held.number, tokens, room)

    def crop(self, held: Cache, tokens: int) -> None:
        with self._on_all_ranks("crop", number=held.number, tokens=tokens):
            self._own.crop(held.number, tokens)

    def prefill(self, held: Cache, ids: Sequence[int], start: int) -> torch.Tensor:
        # the last token is processed by all, so that this rank has its logits
        count = (len(ids) - 1) // self.ranks
        if count:
            pieces = [list(ids[rank * count : (rank + 1) * count]) for rank in range(self.ranks)]
            with self._group.failing_together():
                self._group.send_each("split", [{"number": held.number, "ids": p, "start": start} for p in pieces])
                self._own.split(held.number, pieces[0], start)
        first = count * self.ranks
        rest = list(ids[first:])
        view = View.of_chunk(start + first, len(rest), self.loaded.device)
        positions = list(range(start + first, start + len(ids)))
        return self.step(held, rest, positions, view, [len(rest) - 1])

    def step(self, held: Cache, ids: list[int], positions: list[int], view: View, keep: list[int]) -> torch.Tensor:
        seen = view(None)
        arguments = {"number": held.number, "ids": ids, "positions": positions, "keep": keep}
        with self._on_all_ranks("together", **arguments, seen=list(seen.shape)):
            self._group.broadcast(seen)
            return self._own.together(seen=seen, **arguments)

    def allocated_bytes(self, held: Cache) -> int:
        return sum(rank["peak"] for rank in self._bytes(held))

    def _bytes(self, held: Cache) -> list[dict[str, int]]:
        with self._on_all_ranks("bytes", number=held.number):
            return [self._own.bytes(held.number), *self._group.replies()]

    def effective(self, held: Cache) -> dict[str, Any]:
        stored = [rank["stored"] for rank in self._bytes(held)]
        return {
            **super().effective(held),
            "kv.ring": f"{self.ranks} ranks over {self._group.transport}, blocks of K and V travel",
            "kv.ring_bytes_per_rank": ", ".join(str(size) for size in stored),
        }


def _applies(kv: KVConfig) -> bool:
    return kv.placement.context_parallel > 1


PLUGIN = Method("ring", "the sequence spread over processes", _applies, Ring)
