"""KV cache offloaded to host memory: encoded states are stored there and copied back one layer at a time."""

from __future__ import annotations

import torch
from transformers.cache_utils import Cache

from niah.backends.transformers.cache.layer import Codec
from niah.backends.transformers.method import Method, Running
from niah.kv.config import KVConfig


class HostCodec:
    """A codec that stores its parts in host memory and decodes them on the device."""

    def __init__(self, codec: Codec, device: torch.device) -> None:
        self.codec, self.device = codec, device
        self.element = codec.element

    def encode(self, states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(part.to("cpu") for part in self.codec.encode(states))

    def decode(self, parts: tuple[torch.Tensor, ...], dtype: torch.dtype) -> torch.Tensor:
        return self.codec.decode(tuple(part.to(self.device) for part in parts), dtype)


class Offloaded(Running):
    """Runs a setting with all layers stored in host memory."""

    def cache(self) -> Cache:
        held = super().cache()
        for layer in self.layers(held):
            layer.wrap(lambda codec: HostCodec(codec, self.loaded.device))
        return held

    def effective(self, held: Cache) -> dict[str, object]:
        return {**super().effective(held), "kv.device": "cpu (host), read one layer at a time"}


def _applies(kv: KVConfig) -> bool:
    return kv.placement.offload is not None


PLUGIN = Method("offload", "the cache in host memory, one layer at a time on the device", _applies, Offloaded)
