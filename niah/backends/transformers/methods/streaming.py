"""Sliding windows on every layer, with or without attention sinks (StreamingLLM, arXiv:2309.17453).

StreamingLLM counts positions inside the cache: sinks 0…S−1, then the newest W tokens, the query last. Between a query
and the newest tokens the distance is then what it was in the text. Only the distance to a sink changes: it is at most
S + W − 1 − s. So keys stay where the model rotated them, and *queries* are turned back to position
``min(p, S + W − 1)`` for the sinks alone; rotary scores depend on distances only, so the result is that of renumbered
keys, for any number of queries at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import pad
from transformers.cache_utils import Cache

from niah.backends.transformers.attention import attention_method, grouped_sdpa
from niah.backends.transformers.cache.rotary import Rotary
from niah.backends.transformers.method import Method, Running, Setting
from niah.backends.transformers.packed import View
from niah.kv.config import KVConfig, Window
from niah.models.shape import LayerShape


@dataclass(frozen=True)
class _Turn:
    """Which keys ``[keys, 1]`` are sinks, and how far queries are turned back for them; None where none is."""

    is_sink: torch.Tensor
    back: torch.Tensor | None


class Windowed(Running):
    """Each token sees the newest ``window`` tokens, itself among them, and the first ``sinks``; the rest is dropped."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._asked = self.kv.window or Window(0)
        self.renumbers = self._asked.sinks > 0 and self._asked.positions == "in_cache"
        self._rotary = Rotary(self.loaded.model) if self.renumbers else None
        self._turns: dict[tuple[int, int], _Turn] = {}
        self._view: View | None = None

    def attached(self) -> AbstractContextManager[Any]:
        return attention_method(self.loaded.model, self._attend) if self.renumbers else nullcontext()

    def reach(self, own: int | None) -> tuple[int | None, int]:
        """(window, sinks) of a layer that has a window of its ``own`` or none; a smaller one stays as it is."""
        asked = self._asked
        if own is not None and own <= asked.size + asked.sinks:
            return own, 0
        return asked.size, asked.sinks

    def cache(self) -> Cache:
        held = super().cache()
        shapes = [shape for shape in self.shape.layers if shape.kind != "shared"]
        for layer, shape in zip(self.layers(held), shapes, strict=True):
            layer.window, layer.sinks = self.reach(shape.window)
        return held

    def prefill(self, held: Cache, ids: Sequence[int], start: int) -> torch.Tensor:
        view = View.of_chunk(start, len(ids), self.loaded.device)
        return self.step(held, list(ids), list(range(start, start + len(ids))), view, [len(ids) - 1])

    def step(self, held: Cache, ids: list[int], positions: list[int], view: View, keep: list[int]) -> torch.Tensor:
        self._view, self._turns = view, {}
        return self.loaded.step(ids, positions, held, lambda own: view(*self.reach(own)), keep)

    def _attend(
        self,
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        **rest: Any,
    ) -> tuple[torch.Tensor, None]:
        layer: LayerShape = self.shape.layers[module.layer_idx]
        window, sinks = self.reach(layer.window)
        if self._rotary is None or not sinks or window is None:
            return grouped_sdpa(module, query, key, value, mask, **rest)
        turn = self._turn(window, sinks, query.shape[2])
        if turn.back is None:
            return grouped_sdpa(module, query, key, value, mask, **rest)
        # one softmax over two kinds of scores: elements of the other kind meet zeros
        both = torch.cat((query, self._rotary.shift(query, turn.back, module)), dim=-1)
        apart = torch.cat((key.masked_fill(turn.is_sink, 0), key.masked_fill(~turn.is_sink, 0)), dim=-1)
        out, _ = grouped_sdpa(module, both, apart, pad(value, (0, key.shape[-1])), mask, **rest)
        return out[..., : value.shape[-1]], None

    def _turn(self, window: int, sinks: int, count: int) -> _Turn:
        """The same for all layers of a step that reach as far."""
        if self._view is None:
            raise RuntimeError("attention was called outside a step")
        if (window, sinks) not in self._turns:
            keys = self._view.key_positions(window, sinks)
            queries = keys[len(keys) - count :]
            back = queries.clamp(max=sinks + window - 1) - queries
            self._turns[window, sinks] = _Turn((keys < sinks)[:, None], back if bool(back.any()) else None)
        return self._turns[window, sinks]

    def effective(self, held: Cache) -> dict[str, Any]:
        reaches = dict.fromkeys(self.reach(layer.window) for layer in self.shape.layers if layer.kind != "shared")
        return {
            **super().effective(held),
            "kv.windows": ",".join(f"{window}+{sinks} sinks" if sinks else str(window) for window, sinks in reaches),
            **({"kv.sink_positions": self._asked.positions} if self._asked.sinks else {}),
        }


def _applies(kv: KVConfig) -> bool:
    return isinstance(kv.tokens, Window)


PLUGIN = Method("streaming", "layers that keep the newest tokens, and the first ones as sinks", _applies, Windowed)
