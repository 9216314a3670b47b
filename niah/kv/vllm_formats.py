"""Formats of vLLM's GPU kernels beyond those in ``formats``: rotated int4, nvfp4, TurboQuant and UltraQuant.

Sources, of vLLM 0.32: ``v1/attention/ops/int4_per_token_head.py``, ``csrc/libtorch_stable/nvfp4_kv_cache_kernels.cu``,
``model_executor/layers/quantization/turboquant/config.py`` and ``v1/attention/ops/ultraquant/format.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from niah.kv.formats import SIXTEEN_BIT_BYTES, TOKEN_HEAD_SCALE_BYTES, Format, Side

# layers at either end that vLLM leaves in 16 bit for TurboQuant and UltraQuant, in models without linear attention
_EDGE_LAYERS = 2


@dataclass(frozen=True, slots=True)
class RotatedTokenHead(Format):
    """Integers behind a randomized Hadamard transform, one fp32 scale per token and head (``int4_per_token_head``).

    The zero point lies in the four lowest bits of the scale's mantissa, so it takes no bytes of its own.
    """

    layout: ClassVar[str] = "rotated_token_head"

    @property
    def label(self) -> str:
        return f"rotated {self.element} with a scale per token and head"

    def canonical(self) -> dict[str, Any]:
        return {"granularity": self.layout, "symmetric": False}

    def scale_bytes(self, dim: int) -> int:  # noqa: ARG002
        return TOKEN_HEAD_SCALE_BYTES


@dataclass(frozen=True, slots=True)
class Nvfp4(Format):
    """4-bit floats (E2M1) with one fp8 scale per 16 elements along head_dim, NVIDIA's format.

    Attributes:
        four_over_six: map the largest element of a group to 4 in place of 6 where that loses less (arXiv:2512.02010).
    """

    layout: ClassVar[str] = "nvfp4"
    GROUP: ClassVar[int] = 16
    HEAD_DIMS: ClassVar[tuple[int, ...]] = (64, 128, 256, 512)
    four_over_six: bool = False

    @property
    def pair(self) -> tuple[str, str]:
        return self.element, f"{self.layout}_4over6" if self.four_over_six else self.layout

    @property
    def label(self) -> str:
        return f"{self.element}, scaled to 6 or 4" if self.four_over_six else self.element

    def canonical(self) -> dict[str, Any]:
        found = {"granularity": "group_token", "group_size": self.GROUP}
        return {**found, "scales": "four_over_six"} if self.four_over_six else found

    def scale_bytes(self, dim: int) -> int:
        return dim // self.GROUP

    def group(self, dim: int) -> int | None:  # noqa: ARG002
        return self.GROUP

    def head_problem(self, dim: int) -> str:
        if dim in self.HEAD_DIMS:
            return ""
        sizes = ", ".join(map(str, self.HEAD_DIMS))
        return f"FlashInfer's kernels read it with heads of {sizes}, not {dim}; use int4 or int8"


@dataclass(frozen=True, slots=True)
class TurboQuant(Format):
    """vLLM's TurboQuant: an fp16 norm for rotated keys, scale and zero point for values, none beside fp8 elements.

    Keys of 3 and 4 bits are indices of Lloyd-Max centroids behind a Hadamard transform, those of 8 bits are fp8.
    """

    layout: ClassVar[str] = "turboquant"
    side: Side

    @property
    def pair(self) -> tuple[str, str]:
        return self.element, f"{self.layout}_{self.side}"

    @property
    def label(self) -> str:
        return f"{self.element} of TurboQuant"

    @property
    def is_rotated(self) -> bool:
        """Whether elements stand behind a Hadamard transform."""
        return self.side == "keys" and self.bits < 8

    def canonical(self) -> dict[str, Any]:
        return {"granularity": self.layout, "symmetric": False}

    def scale_bytes(self, dim: int) -> int:  # noqa: ARG002
        if self.bits == 8:
            return 0
        return SIXTEEN_BIT_BYTES if self.side == "keys" else 2 * SIXTEEN_BIT_BYTES

    def head_problem(self, dim: int) -> str:
        if self.is_rotated and not _is_power_of_two(dim):
            return f"TurboQuant's Hadamard transform needs heads of a power of two, not {dim}; use int4 or int8"
        return ""

    def layers_in_16_bit(self, layers: int) -> frozenset[int]:
        return _edges(layers)


@dataclass(frozen=True, slots=True)
class UltraQuant(Format):
    """vLLM's UltraQuant: 4-bit floats (E2M1), a power-of-two scale of one byte per 32 elements, keys rotated.

    Queries that meet stored keys are rotated too and rounded to fp8.
    """

    layout: ClassVar[str] = "ultraquant"
    query_element: ClassVar[str] = "fp8_e4m3"
    GROUP: ClassVar[int] = 32
    side: Side

    @property
    def pair(self) -> tuple[str, str]:
        return self.element, f"{self.layout}_{self.side}"

    @property
    def label(self) -> str:
        return f"{self.element} of UltraQuant"

    @property
    def is_rotated(self) -> bool:
        """Whether elements stand behind a Hadamard transform."""
        return self.side == "keys"

    def canonical(self) -> dict[str, Any]:
        return {"granularity": self.layout, "group_size": self.GROUP}

    def scale_bytes(self, dim: int) -> int:
        return dim // self.GROUP

    def group(self, dim: int) -> int | None:  # noqa: ARG002
        return self.GROUP

    def head_problem(self, dim: int) -> str:
        if _is_power_of_two(dim):
            return ""
        return f"UltraQuant's Hadamard transform needs heads of a power of two, not {dim}; use int4 or int8"

    def layers_in_16_bit(self, layers: int) -> frozenset[int]:
        return _edges(layers)


def _is_power_of_two(dim: int) -> bool:
    return dim > 0 and dim & (dim - 1) == 0


def _edges(layers: int) -> frozenset[int]:
    """The first and the last layers, never more than half of the model each."""
    count = min(_EDGE_LAYERS, layers // 2)
    return frozenset({*range(count), *range(layers - count, layers)})
