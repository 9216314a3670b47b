"""Cache storage by optimum-quanto or hqq, as in transformers' QuantizedCache: context quantized, the rest in 16 bit.

The numerics, the packing and the order of events are those of transformers (``cache_utils.QuantizedLayer``): the pass
that brings the context attends to raw keys and values, later ones read the quantized context. Its residual is
what comes after: tokens of questions, which stay in 16 bit. A second pass of context would round old tokens again,
as in transformers, so a context is best given whole (``reads_raw``).
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

from niah.backends.transformers.cache.layer import Side


class Quantizer(Protocol):
    """The quantizer of a package's cache layer."""

    def quantize(self, states: torch.Tensor) -> Any: ...

    def restore(self, quantized: Any) -> torch.Tensor: ...

    def tensors(self, quantized: Any) -> tuple[torch.Tensor, ...]:
        """All tensors that make up the quantized states."""
        ...

    def whole(self, states: torch.Tensor) -> int:
        """Number of leading tokens that the package can quantize."""
        ...


class PackageCodec:
    """Names the stored element type; the package itself encodes and decodes."""

    def __init__(self, element: str) -> None:
        self.element = element

    def encode(self, states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        raise NotImplementedError("the package's quantizer encodes whole contexts only")

    def decode(self, parts: tuple[torch.Tensor, ...], dtype: torch.dtype) -> torch.Tensor:
        raise NotImplementedError("the package's quantizer decodes whole contexts only")


class PackagedSide(Side):
    """Keys or values of one layer, quantized by a package.

    Args:
        quantizer: the package's quantizer.
        element: stored type, as ``KVConfig`` names it.
        dtype: dtype of unquantized tokens and of the scales.
    """

    reads_raw = True
    depends_on_passes = True

    def __init__(self, quantizer: Quantizer, element: str, dtype: torch.dtype) -> None:
        super().__init__(PackageCodec(element))
        self.quantizer, self.dtype = quantizer, dtype
        self.packed: Any = None
        self.quantized = 0
        self.tail: torch.Tensor | None = None
        self.held = 0
        self._raw: torch.Tensor | None = None

    def append(self, states: torch.Tensor, reserve: int, *, hold: bool = False) -> None:  # noqa: ARG002
        """As ``Side.append``; nothing is reserved, since each pass quantizes the whole context again.

        Raises:
            ValueError: context tokens are appended while tokens of questions are stored.
        """
        new = states.to(self.dtype)
        if hold:
            self.held += new.shape[2]
            self._settle(new.clone() if self.tail is None else torch.cat((self.tail, new), dim=2))
            return
        if self.held:
            raise ValueError("the tokens of questions must be cropped before context tokens are appended")
        whole = new if not self.used else torch.cat((self.read(self.dtype), new), dim=2)
        self._raw = whole.to(states.dtype)
        self.quantized = self.quantizer.whole(whole)
        self.packed = self.quantizer.quantize(whole[:, :, : self.quantized].contiguous()) if self.quantized else None
        self._settle(whole[:, :, self.quantized :].clone())

    def _settle(self, tail: torch.Tensor) -> None:
        self.tail = tail
        self.used = self.quantized + tail.shape[2]
        packed = () if self.packed is None else self.quantizer.tensors(self.packed)
        self.buffers = (*packed, tail)
        self.peak_bytes = max(self.peak_bytes, sum(b.untyped_storage().nbytes() for b in self.buffers))

    def read(self, dtype: torch.dtype) -> torch.Tensor:
        """What attention reads: raw states in the pass that stores a context, the stored ones afterwards."""
        if self._raw is not None:
            raw, self._raw = self._raw, None
            return raw.to(dtype)
        tail = self.buffers[-1].to(dtype)
        return tail if self.packed is None else torch.cat((self.quantizer.restore(self.packed).to(dtype), tail), dim=2)

    def keep_ends(self, first: int, last: int) -> None:
        if self.used > first + last:
            raise ValueError("QuantizedCache drops no tokens")

    @property
    def can_crop(self) -> bool:
        return False

    def can_crop_to(self, count: int) -> bool:
        return count == self.used - self.held

    def crop(self, count: int) -> None:
        drop = self.used - count
        if drop > 0 and self.tail is not None:
            self.held -= drop
            self._settle(self.tail[:, :, : self.tail.shape[2] - drop].clone())

    def bytes_of(self, tokens: int) -> int:
        """Bytes of the quantized context and of the 16-bit tokens after it, for ``tokens`` in total."""
        if self.tail is None:
            return 0
        token = self.tail.shape[0] * self.tail.shape[1] * self.tail.shape[3] * self.tail.element_size()
        packed = sum(b.untyped_storage().nbytes() for b in self.buffers[:-1])
        return packed + (tokens - self.quantized) * token

    def fresh(self) -> PackagedSide:
        return PackagedSide(self.quantizer, self.codec.element, self.dtype)

    def fork(self) -> PackagedSide:
        twin = self.fresh()
        # each pass packs anew and nothing is changed in place, so the packed context can be shared
        twin.packed, twin.quantized, twin.held = self.packed, self.quantized, self.held
        if self.tail is not None:
            twin._settle(self.tail.clone())  # noqa: SLF001
        return twin
