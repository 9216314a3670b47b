"""KIVI storage (arXiv:2402.02750): keys per channel in groups of tokens, values per token, the newest tokens in 16 bit.

At T tokens with residual R: keys keep ``T mod R`` tokens in 16 bit and quantize whole multiples of R; values keep
``min(T, R)`` and quantize one token for each that comes. Everything is stored and read in this form also during
prefill, so a chunk of the prompt reads its own older tokens quantized; the paper's own kernels read the prompt raw.

Tokens of questions behind a context are kept in 16 bit beside it (``hold``): several questions share the context, and
a group of keys that mixed their tokens would let one change what another reads.
"""

from __future__ import annotations

import torch

from niah.backends.transformers.cache.layer import GROWTH_SLOTS, CacheFormat, Codec, Side
from niah.backends.transformers.cache.packing import pack, quantize, restore, unpack
from niah.backends.transformers.formats.int4 import TokenGroups
from niah.backends.transformers.support import FORMATS
from niah.kv.formats import KiviKeys, KiviValues


class ChannelGroups:
    """A slot is a group of tokens: payload ``[…, group · dim · bits / 8]``, fp16 scales and minima ``[…, dim]``."""

    def __init__(self, bits: int, group_size: int) -> None:
        self.bits, self.group_size = bits, group_size
        self.element = f"int{bits}"

    def encode(self, states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if states.shape[2] % self.group_size:
            raise ValueError(f"{states.shape[2]} tokens are not a multiple of the group size {self.group_size}")
        groups = states.float().reshape(*states.shape[:2], -1, self.group_size, states.shape[3])
        codes, scale, low = quantize(groups, 3, self.bits)
        return pack(codes, self.bits).flatten(-2), scale.squeeze(3), low.squeeze(3)

    def decode(self, parts: tuple[torch.Tensor, ...], dtype: torch.dtype) -> torch.Tensor:
        packed, scale, low = parts
        codes = unpack(packed.reshape(*packed.shape[:3], self.group_size, -1), self.bits)
        return restore(codes, scale.unsqueeze(3), low.unsqueeze(3)).flatten(2, 3).to(dtype)


class ResidualSide(Side):
    """Keys or values: a quantized store of old tokens, then a tail of new ones in 16 bit.

    Args:
        codec: of the store; one slot of it holds ``slot_tokens`` tokens.
        dtype: of the tail.
        whole: quantize only whole multiples of ``residual`` (keys), else all but the newest ``residual`` (values).
    """

    # a token reads quantized what its own pass has moved out of the residual
    depends_on_passes = True

    def __init__(self, codec: Codec, slot_tokens: int, residual: int, dtype: torch.dtype, *, whole: bool) -> None:
        super().__init__(codec)
        self.slot_tokens, self.residual, self.dtype, self.whole = slot_tokens, residual, dtype, whole
        self.store = Side(codec)
        self.tail: torch.Tensor | None = None
        self.held = 0

    @property
    def stored_tokens(self) -> int:
        return self.store.used * self.slot_tokens

    @property
    def settled(self) -> int:
        """Tokens of the context, without those of questions."""
        return self.used - self.held

    def split(self, tokens: int) -> tuple[int, int]:
        """(quantized, in 16 bit) of a sequence of ``tokens``."""
        kept = tokens % self.residual if self.whole else min(tokens, self.residual)
        return tokens - kept, kept

    def append(self, states: torch.Tensor, reserve: int, *, hold: bool = False) -> None:
        """As ``Side.append``, with ``reserve`` in tokens.

        Raises:
            ValueError: context tokens are appended while tokens of questions are stored.
        """
        states = states.to(self.dtype)
        tail = states.clone() if self.tail is None else torch.cat((self.tail, states), dim=2)
        if hold:
            self.held += states.shape[2]
        elif self.held:
            raise ValueError("the tokens of questions must be cropped before context tokens are appended")
        else:
            old = self.split(self.stored_tokens + tail.shape[2])[0] - self.stored_tokens
            if old:
                tokens = reserve or self.stored_tokens + old + GROWTH_SLOTS
                self.store.append(tail[:, :, :old], self.split(tokens)[0] // self.slot_tokens)
                # a view would keep the quantized tokens alive in 16 bit
                tail = tail[:, :, old:].clone()
        self._settle(tail)

    def _settle(self, tail: torch.Tensor) -> None:
        self.tail = tail
        self.used = self.stored_tokens + tail.shape[2]
        self.buffers = (*self.store.buffers, tail)
        self.peak_bytes = max(self.peak_bytes, sum(b.untyped_storage().nbytes() for b in self.buffers))

    def read(self, dtype: torch.dtype) -> torch.Tensor:
        tail = self.buffers[-1].to(dtype)
        return torch.cat((self.store.read(dtype), tail), dim=2) if self.store.used else tail

    def keep_ends(self, first: int, last: int) -> None:
        if self.used > first + last:
            raise ValueError("old tokens are quantized together and cannot be dropped one at a time")

    @property
    def can_crop(self) -> bool:
        return not self.store.used

    def can_crop_to(self, count: int) -> bool:
        return count == self.settled or (count < self.used and self._quantized_at(count) == self.stored_tokens)

    def _quantized_at(self, count: int) -> int:
        return self.split(count)[0]

    def crop(self, count: int) -> None:
        drop = self.used - count
        if drop > 0 and self.tail is not None:
            self.held = max(0, self.held - drop)
            self._settle(self.tail[:, :, : self.tail.shape[2] - drop].clone())

    def bytes_of(self, tokens: int) -> int:
        quantized, kept = self.split(tokens)
        token = 0
        if self.tail is not None:
            token = self.tail.shape[0] * self.tail.shape[1] * self.tail.shape[3] * self.tail.element_size()
        return quantized // self.slot_tokens * self.store.slot_bytes() + kept * token

    def fresh(self) -> ResidualSide:
        return ResidualSide(self.codec, self.slot_tokens, self.residual, self.dtype, whole=self.whole)

    def fork(self) -> ResidualSide:
        twin = self.fresh()
        twin.store, twin.held = self.store.fork(), self.held
        if self.tail is not None:
            twin._settle(self.tail.clone())  # noqa: SLF001
        return twin


def _side(stored: KiviKeys | KiviValues, residual: int, dtype: torch.dtype) -> Side:
    if isinstance(stored, KiviKeys):
        codec = ChannelGroups(stored.bits, stored.group_size)
        return ResidualSide(codec, stored.group_size, residual, dtype, whole=True)
    return ResidualSide(TokenGroups(stored.bits, stored.group_size), 1, residual, dtype, whole=False)


PLUGIN = CacheFormat("kivi", "keys per channel, values per token, a residual in 16 bit", FORMATS["kivi"], side=_side)
