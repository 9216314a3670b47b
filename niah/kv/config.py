"""``KVConfig``: a KV-cache setting as a typed value, independent of any engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, Union

from niah.errors import ConfigError
from niah.kv.formats import Format, Plain

Positions = Literal["in_cache", "original"]
Update = Literal["delta", "linear"]
SkipLayer: TypeAlias = Union[int, Literal["sliding_window"]]


@dataclass(frozen=True, slots=True)
class AllTokens:
    """Every token is kept, as far as the model's own layers keep it."""

    @property
    def most(self) -> int | None:
        """Tokens that a layer keeps at most; None sets no limit."""
        return None


@dataclass(frozen=True, slots=True)
class Window:
    """Every layer keeps the newest ``size`` tokens, and always the first ``sinks`` ones (arXiv:2309.17453).

    Attributes:
        positions: ``in_cache`` (renumbered inside the cache) or ``original``.
    """

    size: int
    sinks: int = 0
    positions: Positions = "in_cache"

    @property
    def most(self) -> int | None:
        return self.size + self.sinks


Tokens: TypeAlias = Union[AllTokens, Window]


@dataclass(frozen=True, slots=True)
class Infini:
    """A compressive memory of constant size behind a local segment (Infini-attention, arXiv:2404.07143).

    Attributes:
        segment: tokens of the local segment.
        gate: share of the memory in attention's output, from 0 (local only) to 1.
        update: how a segment goes into the memory.
    """

    segment: int
    gate: float = 0.5
    update: Update = "delta"

    def state_bytes(self, k_dim: int, v_dim: int) -> int:
        """Bytes of one head's memory and its normalizer, in fp32."""
        return (k_dim * v_dim + k_dim) * 4


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the cache lies.

    Attributes:
        tensor_parallel, pipeline_parallel, context_parallel: devices that share heads, layers and the sequence.
        block_size: tokens of a block, where the cache is paged.
        offload: ``cpu`` keeps the cache in the host's memory.
    """

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    context_parallel: int = 1
    block_size: int | None = None
    offload: Literal["cpu", "lmcache"] | None = None


@dataclass(frozen=True, slots=True)
class Extra:
    """Parameters of a method from a plugin: a subclass names its aspect, and its fields are the parameters.

    Attributes:
        aspect: every backend that does not declare it refuses the setting.
    """

    aspect: ClassVar[str] = ""

    def kept(self, tokens: int) -> int:
        """Tokens that a layer keeps of a sequence of ``tokens``."""
        return tokens


E = TypeVar("E", bound=Extra)


@dataclass(frozen=True, slots=True)
class KVConfig:
    """A KV-cache setting; each backend translates it to its engine's arguments.

    Attributes:
        name: label in tables and rows, for instance ``int8`` or ``streaming(sinks=4,window=512)``.
        keys, values: how each side is stored.
        residual: newest tokens that stay in 16 bit.
        skip_layers: layers left in 16 bit, by number or all that have a window.
        tokens: which tokens are kept.
        memory: a compressive memory in place of old tokens.
        kv_heads: number of KV heads to which the model's own are merged by mean pooling.
        prefill_reads: whether attention reads what is stored during prefill too, or each chunk of the prompt raw.
        placement: devices, paging and host memory.
        native: options of one engine, passed on as they are.
        extras: what methods that come as plugins ask for.

    Raises:
        ConfigError: a number that is too small, or a residual that does not go with the format.
    """

    name: str
    keys: Format = field(default=Plain("bf16"))
    values: Format = field(default=Plain("bf16"))
    residual: int = 0
    skip_layers: tuple[SkipLayer, ...] = ()
    tokens: Tokens = AllTokens()
    memory: Infini | None = None
    kv_heads: int | None = None
    prefill_reads: Literal["stored", "raw_chunk"] = "stored"
    placement: Placement = Placement()
    native: tuple[tuple[str, str], ...] = ()
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        stored: tuple[Any, ...] = (self.keys, self.values)
        if not all(isinstance(side, Format) for side in stored):
            raise ConfigError(f"{self.name!r}: keys and values must be formats, such as Plain('bf16').")
        for what, value, least in _counts(self):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"{self.name!r}: {what} is {value!r}; give a whole number of at least {least}.")
        problem = self.keys.residual_problem(self.residual) or self.values.residual_problem(self.residual)
        if problem:
            raise ConfigError(f"{self.name}: {problem}.")

    @property
    def is_quantized(self) -> bool:
        """Whether keys or values are stored in fewer than 16 bits."""
        return self.keys.is_quantized or self.values.is_quantized

    @property
    def window(self) -> Window | None:
        """The window where the setting asks for one."""
        return self.tokens if isinstance(self.tokens, Window) else None

    def extra(self, kind: type[E]) -> E | None:
        """The parameters of one method from a plugin; None where the setting has none."""
        return next((one for one in self.extras if isinstance(one, kind)), None)

    @property
    def sides(self) -> tuple[tuple[Literal["keys", "values"], Format], ...]:
        """Both sides with their names."""
        return ("keys", self.keys), ("values", self.values)


def _counts(kv: KVConfig) -> Iterator[tuple[str, object, int]]:
    """Numbers of a setting with their minimum; a number may be None where it is optional."""
    optional = {
        "kv_heads": kv.kv_heads,
        "block_size": kv.placement.block_size,
        "group_size": getattr(kv.values, "group_size", None),
        "segment": kv.memory.segment if kv.memory else None,
        "window": kv.window.size if kv.window else None,
    }
    yield from ((what, value, 1) for what, value in optional.items() if value is not None)
    yield "residual", kv.residual, 0
    yield "sinks", kv.window.sinks if kv.window else 0, 0
    yield "context_parallel", kv.placement.context_parallel, 1
