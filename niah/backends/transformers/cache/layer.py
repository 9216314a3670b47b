"""``StoredLayer``, the cache layer of every format: a ``Codec`` encodes K or V, a ``Side`` stores one of the two."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from transformers.cache_utils import CacheLayerMixin

from niah.registry import Plugin

# unquantized element types
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
# slots by which a layer grows when nothing was reserved: a few large steps copy less than many small ones
GROWTH_SLOTS = 512


class Codec(Protocol):
    """How one tensor of keys or values is stored.

    ``encode`` takes ``[batch, kv_heads, tokens, head_dim]`` and returns the stored parts (payload, scales, …), each
    ``[batch, kv_heads, tokens, *]``. ``decode`` is given views of the parts, sliced along tokens, and returns what
    attention reads in the dtype asked for. Nothing but the parts is kept. ``element`` names the stored type as
    ``KVConfig`` does.
    """

    @property
    def element(self) -> str: ...

    def encode(self, states: torch.Tensor) -> tuple[torch.Tensor, ...]: ...

    def decode(self, parts: tuple[torch.Tensor, ...], dtype: torch.dtype) -> torch.Tensor: ...


@dataclass(frozen=True)
class CacheFormat(Plugin):
    """A cache format.

    Attributes:
        stores: pairs of element type and layout, see ``Format.pair``.
        codec: from a ``Format`` to its ``Codec``, where a format needs no more than that.
        side: from a ``Format``, the residual and the dtype of 16-bit tokens to a ``Side``; replaces ``codec`` where
            several tokens are encoded together.
    """

    kind: ClassVar[str] = "formats"
    stores: frozenset[tuple[str, str]]
    codec: Callable[[Any], Codec] | None = None
    side: Callable[[Any, int, torch.dtype], Side] | None = None


class Side:
    """Growing storage of keys or of values: one buffer a part, ``[batch, kv_heads, capacity, *]``.

    A slot is what one entry of the parts holds: one token, or a whole group of them where the codec says so.

    Attributes:
        reads_raw: the pass that brings a context attends to raw states; such a context must come in one pass.
        depends_on_passes: what a token reads depends on how the prefill is divided into passes.
    """

    reads_raw = False
    depends_on_passes = False

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.buffers: tuple[torch.Tensor, ...] = ()
        self.used = 0
        self.peak_bytes = 0

    @property
    def capacity(self) -> int:
        return self.buffers[0].shape[2] if self.buffers else 0

    def append(self, states: torch.Tensor, reserve: int, *, hold: bool = False) -> None:  # noqa: ARG002
        """Add ``states [batch, kv_heads, tokens, head_dim]``.

        Args:
            reserve: slots to hold at once; 0 grows in steps.
            hold: these tokens belong to questions behind a context, which must stay as it is.
        """
        parts = self.codec.encode(states)
        need = self.used + parts[0].shape[2]
        if need > self.capacity:
            self._grow(parts, max(need, reserve) if reserve else need + GROWTH_SLOTS)
        for buffer, part in zip(self.buffers, parts, strict=True):
            buffer[:, :, self.used : need] = part
        self.used = need

    def _grow(self, like: tuple[torch.Tensor, ...], capacity: int) -> None:
        grown = []
        for i, part in enumerate(like):
            fresh = part.new_empty((*part.shape[:2], capacity, *part.shape[3:]))
            if self.buffers:
                fresh[:, :, : self.used] = self.buffers[i][:, :, : self.used]
            grown.append(fresh)
        self.buffers = tuple(grown)
        self.peak_bytes = max(self.peak_bytes, sum(b.untyped_storage().nbytes() for b in grown))

    def read(self, dtype: torch.dtype) -> torch.Tensor:
        return self.codec.decode(tuple(b[:, :, : self.used] for b in self.buffers), dtype)

    def keep_ends(self, first: int, last: int) -> None:
        """Drop all but the oldest ``first`` and the newest ``last`` slots; the storage shrinks with them."""
        if self.used > first + last:
            newest = slice(self.used - last, self.used)
            self.buffers = tuple(torch.cat((b[:, :, :first], b[:, :, newest]), dim=2) for b in self.buffers)
            self.used = first + last

    @property
    def can_crop(self) -> bool:
        """Whether every earlier state can be restored."""
        return True

    def can_crop_to(self, count: int) -> bool:
        """Whether the state with the oldest ``count`` tokens can be restored exactly."""
        return count <= self.used

    def crop(self, count: int) -> None:
        self.used = min(self.used, count)

    def bytes_of(self, tokens: int) -> int:
        """Bytes of a sequence of ``tokens``, from the sizes of the stored tensors."""
        return tokens * self.slot_bytes()

    def slot_bytes(self) -> int:
        """Bytes of one slot over all parts, from the storages themselves."""
        return sum(b.untyped_storage().nbytes() for b in self.buffers) // max(1, self.capacity)

    def fresh(self) -> Side:
        """An empty ``Side`` of the same kind."""
        return Side(self.codec)

    def fork(self) -> Side:
        twin = Side(self.codec)
        twin.buffers = tuple(b.clone() for b in self.buffers)
        twin.used, twin.peak_bytes = self.used, self.peak_bytes
        return twin


class StoredLayer(CacheLayerMixin):  # type: ignore[misc]
    """A layer that keeps K and V as their codecs store them, and gives attention only what it has stored.

    Every token, also of the prompt and of the chunk being processed, is read back from storage, as the paged kernels
    of serving engines do; so a quantized format acts on prefill as well as on decoding.

    Args:
        keys, values: how the two sides are stored.
        window: tokens that a window layer keeps; None keeps all.
    """

    is_croppable = True

    def __init__(self, keys: Codec | Side, values: Codec | Side, window: int | None = None) -> None:
        super().__init__()
        self._sides = (_side(keys), _side(values))
        self.window = window
        # first tokens that stay when the window moves on
        self.sinks = 0
        self.is_sliding = window is not None
        self.seen = 0
        self._elements = 0
        # slots to hold at once; 0 grows in steps
        self.reserve_slots = 0
        # while questions are packed behind a context nothing is dropped: the mask decides what each may see
        self.hold = False

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:  # noqa: ARG002
        self.device = key_states.device
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store the new states ``[batch, kv_heads, tokens, head_dim]`` and return all that attention may read."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        keys, values = self._sides
        keys.append(key_states, self.reserve_slots, hold=self.hold)
        values.append(value_states, self.reserve_slots, hold=self.hold)
        self.seen += key_states.shape[2]
        self._elements = sum(states.shape[1] * states.shape[3] for states in (key_states, value_states))
        read = keys.read(key_states.dtype), values.read(value_states.dtype)
        if not self.hold:
            self.drop()
        return read

    def drop(self) -> None:
        """Free what no later token will read."""
        if self.window is not None:
            for side in self._sides:
                side.keep_ends(self.sinks, self.window)

    def kept(self, tokens: int) -> int:
        """Slots that a sequence of ``tokens`` keeps here."""
        return tokens if self.window is None else min(tokens, self.sinks + self.window)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        used = self.slots
        return used + query_length, self.seen - used

    def get_seq_length(self) -> int:
        return self.seen

    def get_max_length(self) -> int:
        return -1 if self.window is None else self.window

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the newest ``-tokens_to_remove`` tokens.

        Raises:
            ValueError: a window layer has dropped tokens, or the format cannot restore that state exactly.
        """
        count = abs(tokens_to_remove)
        if not count:
            return
        if self.slots < self.seen:
            raise ValueError("a window layer that has dropped tokens cannot be cropped")
        if not self.can_crop_to(self.seen - count):
            raise ValueError(f"tokens are quantized together, so the cache cannot be cropped to {self.seen - count}")
        self.seen -= count
        for side in self._sides:
            side.crop(self.seen)

    def reset(self) -> None:
        self._sides = (self._sides[0].fresh(), self._sides[1].fresh())
        self.seen = 0
        self.is_initialized = False

    def fork(self) -> StoredLayer:
        """A copy without shared storage, for questions that would change what the layer keeps."""
        twin = copy.copy(self)
        twin._sides = (self._sides[0].fork(), self._sides[1].fork())  # noqa: SLF001
        return twin

    def wrap(self, around: Callable[[Codec], Codec]) -> None:
        """Wrap both codecs; only before anything is stored."""
        for side in self._sides:
            side.codec = around(side.codec)

    @property
    def codecs(self) -> tuple[Codec, Codec]:
        return self._sides[0].codec, self._sides[1].codec

    @property
    def slots(self) -> int:
        """Tokens stored now."""
        return self._sides[0].used

    def token_elements(self) -> int:
        """Elements of one token's key and value as they came in, over all heads."""
        return self._elements

    @property
    def reads_raw(self) -> bool:
        """Whether a context must come in one pass, which attends to raw keys and values."""
        return any(side.reads_raw for side in self._sides)

    @property
    def depends_on_passes(self) -> bool:
        """Whether a context is only reproduced when its prefill is divided into the same passes."""
        return any(side.depends_on_passes for side in self._sides)

    @property
    def can_crop(self) -> bool:
        """Whether the layer can restore every earlier state exactly."""
        return self.slots == self.seen and all(side.can_crop for side in self._sides)

    def can_crop_to(self, tokens: int) -> bool:
        """Whether the layer can restore its state after ``tokens`` tokens exactly."""
        if tokens == self.seen:
            return True
        return self.slots == self.seen and all(side.can_crop_to(tokens) for side in self._sides)

    def logical_bytes(self, tokens: int) -> int:
        """Bytes that a sequence of ``tokens`` occupies here, counted on the stored tensors."""
        return sum(side.bytes_of(self.kept(tokens)) for side in self._sides)

    def reserve(self, tokens: int, room: int) -> None:
        """Make the next growth large enough for ``tokens`` of context and ``room`` slots of questions behind it.

        A window layer holds only its window and the current chunk, so it reserves no more than that.
        """
        self.reserve_slots = tokens + room if self.window is None else 1

    @property
    def peak_bytes(self) -> int:
        """Most bytes that the storages of this layer have held at a time."""
        return sum(side.peak_bytes for side in self._sides)

    def storages(self) -> dict[int, int]:
        """Bytes of each distinct storage by address, so that shared ones are counted once."""
        found: dict[int, int] = {}
        for side in self._sides:
            for buffer in side.buffers:
                storage = buffer.untyped_storage()
                found[storage.data_ptr()] = storage.nbytes()
        return found

    def in_force(self) -> dict[str, str]:
        """What is stored: element types, and the dtypes of the tensors that hold them."""
        found: dict[str, str] = {}
        for name, side in zip("kv", self._sides, strict=True):
            parts = "+".join(str(buffer.dtype).removeprefix("torch.") for buffer in side.buffers)
            found |= {f"kv.{name}_dtype": side.codec.element, f"kv.{name}_storage": parts}
        return found


def _side(stored: Codec | Side) -> Side:
    return stored if isinstance(stored, Side) else Side(stored)
