"""Storage formats of keys or values: each ``Format`` has its name, its bytes and the head sizes that it supports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import gcd
from typing import Any, ClassVar, Literal

from niah.errors import ConfigError, near

# bits of one stored element, without scales
ELEMENT_BITS: Mapping[str, int] = {
    "auto": 16,  # chosen by the engine, usually the model's 16-bit type
    "fp32": 32,
    "bf16": 16,
    "fp16": 16,
    "fp8_e4m3": 8,
    "fp8_e5m2": 8,
    "int8": 8,
    "int4": 4,
    "int3": 3,
    "int2": 2,
    "nvfp4": 4,
    "fp4_e2m1": 4,
    "q8_0": 8,
    "q5_1": 5,
    "q5_0": 5,
    "q4_1": 4,
    "q4_0": 4,
    "iq4_nl": 4,
}
SIXTEEN_BIT = ("bf16", "fp16")
SIXTEEN_BIT_BYTES = 2
# one fp32 scale
TOKEN_HEAD_SCALE_BYTES = 4
# llama.cpp's blocks (ggml/src/ggml-common.h): 32 elements, an fp16 scale, and in the _1 types an fp16 minimum
BLOCK_ELEMENTS = 32
BLOCK_SCALE_BYTES: Mapping[str, int] = {"q8_0": 2, "q5_1": 4, "q5_0": 2, "q4_1": 4, "q4_0": 2, "iq4_nl": 2}

Rounding = Literal["nearest", "zero"]
Side = Literal["keys", "values"]
_ROUNDED: Mapping[str, str] = {"nearest": "", "zero": "_toward_zero"}


@dataclass(frozen=True, slots=True)
class Format:
    """One side of a cache, keys or values, as it is stored. A subclass says what shares a scale.

    Attributes:
        element: type of a stored element, one of ``ELEMENT_BITS``.
        layout: what shares a scale, in a word. A backend declares the pairs of element and layout that it stores.
        tokens_stand_alone: whether a token can be dropped without another one.
        query_element: type to which queries are rounded, rotated, before they meet stored keys; empty leaves them.
        fills_bytes_evenly: whether every token adds the same number of bytes.
    """

    layout: ClassVar[str] = "none"
    tokens_stand_alone: ClassVar[bool] = True
    fills_bytes_evenly: ClassVar[bool] = True
    query_element: ClassVar[str] = ""
    element: str

    def __post_init__(self) -> None:
        if self.element not in ELEMENT_BITS:
            known = ", ".join(ELEMENT_BITS)
            raise ConfigError(f"no element type {self.element!r}; known: {known}.{near(self.element, ELEMENT_BITS)}")

    @property
    def bits(self) -> int:
        """Bits of one element, without scales."""
        return ELEMENT_BITS[self.element]

    @property
    def is_quantized(self) -> bool:
        """Whether an element has fewer than 16 bits."""
        return self.bits < 16

    @property
    def pair(self) -> tuple[str, str]:
        """(element, layout): what a backend declares that it stores."""
        return self.element, self.layout

    @property
    def label(self) -> str:
        """The format in words, for messages."""
        return self.element

    def canonical(self) -> dict[str, Any]:
        """What identifies the format beside its element; part of every cell's identity, so it must never change."""
        return {
            "granularity": self.layout,
            **{name: value for name, value in asdict(self).items() if name != "element"},
        }

    def payload_bytes(self, dim: int) -> int:
        """Bytes of the elements of one token in one head of ``dim`` elements."""
        return dim * self.bits // 8

    def scale_bytes(self, dim: int) -> int:  # noqa: ARG002
        """Bytes of scales and zero points of one token in one head of ``dim`` elements."""
        return 0

    def token_bytes(self, dim: int) -> int:
        """Bytes of one token in one head: elements and scales."""
        return self.payload_bytes(dim) + self.scale_bytes(dim)

    def head_bytes(self, dim: int, tokens: int, residual: int) -> int:
        """Bytes of ``tokens`` in one head, of which the newest ``residual`` are in 16 bit."""
        tail = min(tokens, residual) if self.is_quantized else 0
        return (tokens - tail) * self.token_bytes(dim) + tail * dim * SIXTEEN_BIT_BYTES

    def side_bytes(self, heads: int, dim: int, tokens: int, residual: int) -> int:
        """Bytes of ``tokens`` in all heads of a layer."""
        return heads * self.head_bytes(dim, tokens, residual)

    def group(self, dim: int) -> int | None:  # noqa: ARG002
        """Elements along head_dim that share a scale, which must divide ``dim``; None where nothing does."""
        return None

    def formula(self, letter: str, dim: int) -> str:
        """Bytes of one token in one head: ``K 64 B + 4 B scales``."""
        scales = self.scale_bytes(dim)
        return f"{letter} {self.payload_bytes(dim)} B" + (f" + {scales} B scales" if scales else "")

    def residual_problem(self, residual: int) -> str:  # noqa: ARG002
        """Why the format cannot keep the newest ``residual`` tokens in 16 bit; empty where it can."""
        return ""

    def head_problem(self, dim: int) -> str:  # noqa: ARG002
        """Why no kernel stores heads of ``dim`` elements so, and what to use; empty where one does."""
        return ""

    def layers_in_16_bit(self, layers: int) -> frozenset[int]:  # noqa: ARG002
        """Layers of a model with so many that the engine of this format leaves in 16 bit by itself."""
        return frozenset()


def _check_group(stored: Format, group_size: int) -> None:
    """A group must fill whole bytes."""
    packed = max(1, 8 // stored.bits)
    if group_size < packed or group_size % packed:
        raise ConfigError(
            f"{stored.element} packs {packed} elements to a byte: group_size {group_size} must be a multiple of "
            f"{packed}, for instance 32."
        )


@dataclass(frozen=True, slots=True)
class Plain(Format):
    """Elements of 16 or 32 bit, or whatever the engine chooses (``auto``)."""

    def canonical(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, slots=True)
class TensorScale(Format):
    """8-bit floats with one scale for the whole tensor: 1.0, or the one that a checkpoint brings.

    Attributes:
        rounding: to the nearest (halves to even), or to ``zero``, which cuts off what does not fit.
    """

    layout: ClassVar[str] = "tensor"
    scales: Literal["unit", "checkpoint"] = "unit"
    rounding: Rounding = "nearest"

    @property
    def pair(self) -> tuple[str, str]:
        return self.element, f"{self.scales}_scale{_ROUNDED[self.rounding]}"

    @property
    def label(self) -> str:
        return f"{self.element} with {self.scales} scales"


@dataclass(frozen=True, slots=True)
class TokenHead(Format):
    """One fp32 scale per token and head, without a zero point (vLLM's ``int8_per_token_head``)."""

    layout: ClassVar[str] = "token_head"
    rounding: Rounding = "nearest"

    @property
    def pair(self) -> tuple[str, str]:
        return self.element, f"{self.layout}{_ROUNDED[self.rounding]}"

    @property
    def label(self) -> str:
        return f"{self.element} with a scale per token and head"

    def scale_bytes(self, dim: int) -> int:  # noqa: ARG002
        return TOKEN_HEAD_SCALE_BYTES


@dataclass(frozen=True, slots=True)
class Grouped(Format):
    """Groups of ``group_size`` elements along head_dim, each with an fp16 scale and, unless symmetric, an fp16 minimum.

    Raises:
        ConfigError: a group does not fill whole bytes.
    """

    layout: ClassVar[str] = "group_token"
    group_size: int
    symmetric: bool = False

    def __post_init__(self) -> None:
        Format.__post_init__(self)
        _check_group(self, self.group_size)

    @property
    def pair(self) -> tuple[str, str]:
        return self.element, self.layout + ("_symmetric" if self.symmetric else "")

    @property
    def label(self) -> str:
        return f"{self.element} in {'symmetric ' if self.symmetric else ''}groups of {self.group_size}"

    def scale_bytes(self, dim: int) -> int:
        return dim // self.group_size * (2 if self.symmetric else 4)

    def group(self, dim: int) -> int | None:  # noqa: ARG002
        return self.group_size


@dataclass(frozen=True, slots=True)
class Block(Format):
    """llama.cpp's blocks of 32 elements along head_dim, such as ``q8_0``, ``q5_1`` and ``iq4_nl``."""

    layout: ClassVar[str] = "block"

    @property
    def block_bytes(self) -> int:
        """Bytes of 32 elements: 34 for ``q8_0``, 18 for ``q4_0``."""
        return BLOCK_ELEMENTS * self.bits // 8 + BLOCK_SCALE_BYTES[self.element]

    def canonical(self) -> dict[str, Any]:
        # the _1 types keep a minimum beside the scale
        return {"granularity": self.layout, "symmetric": not self.element.endswith("_1")}

    def scale_bytes(self, dim: int) -> int:
        return dim // BLOCK_ELEMENTS * BLOCK_SCALE_BYTES[self.element]

    def group(self, dim: int) -> int | None:  # noqa: ARG002
        return BLOCK_ELEMENTS


@dataclass(frozen=True, slots=True)
class KiviKeys(Format):
    """Keys per channel in groups of ``group_size`` tokens (KIVI, arXiv:2402.02750): whole residuals are quantized."""

    layout: ClassVar[str] = "kivi_keys"
    tokens_stand_alone: ClassVar[bool] = False
    fills_bytes_evenly: ClassVar[bool] = False
    group_size: int

    @property
    def label(self) -> str:
        return f"{self.element} per channel in groups of {self.group_size} tokens"

    def canonical(self) -> dict[str, Any]:
        return {"granularity": "kivi", "group_size": self.group_size, "symmetric": False}

    def head_bytes(self, dim: int, tokens: int, residual: int) -> int:
        quantized = tokens // residual * residual
        groups = quantized // self.group_size
        return (
            quantized * dim * self.bits // 8
            + groups * dim * 2 * SIXTEEN_BIT_BYTES
            + (tokens - quantized) * dim * SIXTEEN_BIT_BYTES
        )

    def formula(self, letter: str, dim: int) -> str:
        return f"{letter}: {dim * self.bits / 8:g} B × q + {dim * 4} B × q/{self.group_size} + {dim * 2} B × (N − q)"

    def residual_problem(self, residual: int) -> str:
        if residual >= 1 and residual % self.group_size == 0:
            return ""
        return (
            f"keys are quantized {self.group_size} tokens at a time, so the residual {residual} must be a positive "
            f"multiple of {self.group_size}, for instance {self.group_size * 4}"
        )


@dataclass(frozen=True, slots=True)
class KiviValues(Format):
    """Values per token in groups along head_dim, each with an fp16 scale and minimum; beside ``KiviKeys``."""

    layout: ClassVar[str] = "kivi_values"
    tokens_stand_alone: ClassVar[bool] = False
    fills_bytes_evenly: ClassVar[bool] = False
    group_size: int

    def __post_init__(self) -> None:
        Format.__post_init__(self)
        _check_group(self, self.group_size)

    def canonical(self) -> dict[str, Any]:
        return {"granularity": "kivi", "group_size": self.group_size, "symmetric": False}

    def scale_bytes(self, dim: int) -> int:
        return dim // self.group_size * 2 * SIXTEEN_BIT_BYTES

    def group(self, dim: int) -> int | None:  # noqa: ARG002
        return self.group_size

    def formula(self, letter: str, dim: int) -> str:
        return f"{letter}: {self.token_bytes(dim)} B × (N − r) + {dim * 2} B × r"


@dataclass(frozen=True, slots=True)
class Packaged(Format):
    """What a package quantizes for transformers' QuantizedCache: groups along head_dim, scale and zero point in 16 bit.

    Both packages pack rows of whole groups, several rows to one of bytes: optimum-quanto pads an odd number of rows
    (``tensor/packed.py`` of 0.2.7), hqq cannot pack one, so the last token then stays in 16 bit.
    """

    tokens_stand_alone: ClassVar[bool] = False
    fills_bytes_evenly: ClassVar[bool] = False
    group_size: int

    @property
    def label(self) -> str:
        return f"{self.element} of the package {self.layout}"

    def canonical(self) -> dict[str, Any]:
        return {"granularity": self.layout, "group_size": self.group_size, "symmetric": False}

    def quantized_tokens(self, elements: int, tokens: int) -> int:  # noqa: ARG002
        """How many of ``tokens`` the package quantizes, where a token has ``elements`` in all heads of one side."""
        return tokens

    def scale_bytes(self, dim: int) -> int:
        return dim // self.group_size * 2 * SIXTEEN_BIT_BYTES

    def group(self, dim: int) -> int | None:  # noqa: ARG002
        return self.group_size

    def side_bytes(self, heads: int, dim: int, tokens: int, residual: int) -> int:  # noqa: ARG002
        elements = heads * dim
        quantized = self.quantized_tokens(elements, tokens)
        groups = elements // self.group_size * quantized
        rows = -(-groups // (8 // self.bits))
        scales = groups * 2 * SIXTEEN_BIT_BYTES
        return rows * self.group_size + scales + (tokens - quantized) * elements * SIXTEEN_BIT_BYTES


@dataclass(frozen=True, slots=True)
class Quanto(Packaged):
    """optimum-quanto."""

    layout: ClassVar[str] = "quanto"


@dataclass(frozen=True, slots=True)
class Hqq(Packaged):
    """hqq."""

    layout: ClassVar[str] = "hqq"

    def quantized_tokens(self, elements: int, tokens: int) -> int:
        rows_per_byte = 8 // self.bits
        step = rows_per_byte // gcd(elements // self.group_size, rows_per_byte)
        return tokens // step * step
