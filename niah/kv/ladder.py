"""``niah memory --ladder``: how much each method reduces the cache of one model at one length, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from niah.errors import ConfigError
from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from niah.kv.memory.totals import human_gb, kv_bytes, naive_mha_bytes, paged_bytes, reference_bytes
from niah.models.shape import ModelShape
from niah.types import JSON

PAGING = (
    "Paging makes a full cache no smaller: it saves what a contiguous one, reserved for the longest sequence, holds "
    "empty behind shorter ones."
)


@dataclass(frozen=True, slots=True)
class Step:
    """One rung.

    Attributes:
        name: description of the methods applied so far.
        kv: the setting as ``--kv`` takes it; None for the textbook start, which no engine stores.
        total_bytes: bytes of all sequences at this step, unfilled slots of blocks included; None where the step cannot
            be had.
        of_start: share of the first step's bytes.
        of_previous: share of the bytes of the step before.
        note: a remark on the step, or why it is not possible.
    """

    name: str
    kv: str | None
    total_bytes: int | None
    of_start: float | None
    of_previous: float | None
    note: str

    def to_json(self) -> dict[str, JSON]:
        return asdict(self)


def ladder(shape: ModelShape, tokens: int, steps: list[KVConfig], batch: int = 1) -> list[Step]:
    """From MHA in 16 bit over the model's own cache to each setting of ``steps``, every one a whole setting.

    Raises:
        ConfigError: a negative number of tokens.
    """
    start = naive_mha_bytes(shape, tokens, batch)
    found = [Step("MHA, 16 bit", None, start, 1.0, None, "the textbook: every query head keeps its keys and values")]
    before = start
    for name, kv in _rungs(shape, steps):
        try:
            total = paged_bytes(shape, kv, tokens, batch)
        except ConfigError as err:
            found.append(Step(name, kv.name, None, None, None, str(err).removeprefix(f"{kv.name}: ")))
            continue
        note = _paging_note(shape, kv, tokens, batch) if kv.placement.block_size else ""
        found.append(Step(name, kv.name, total, _share(total, start), _share(total, before), note))
        before = total
    return found


def _rungs(shape: ModelShape, steps: list[KVConfig]) -> Iterator[tuple[str, KVConfig]]:
    stored = Plain(shape.native_dtype)
    own = KVConfig(shape.native_dtype, stored, stored)
    layout = _own_layout(shape)
    # else the textbook's start is the model's own cache
    if layout != "MHA" or naive_mha_bytes(shape, 1) != reference_bytes(shape, 1):
        yield f"{layout}, 16 bit", own
    for kv in steps:
        yield kv.name, kv


def _own_layout(shape: ModelShape) -> str:
    """How the model stores its cache, by the name of the method."""
    if shape.is_mla:
        return "MLA"
    heads = shape.kv_heads
    word = "MHA" if heads == (shape.heads,) else "MQA" if heads == (1,) else f"GQA-{'/'.join(map(str, heads))}"
    windows = any(layer.window for layer in shape.layers)
    return f"{word} with window layers" if windows else word


def _paging_note(shape: ModelShape, kv: KVConfig, tokens: int, batch: int) -> str:
    block = kv.placement.block_size or 1
    unfilled = -tokens % block
    wasted = paged_bytes(shape, kv, tokens, batch) - kv_bytes(shape, kv, tokens, batch)
    most = kv_bytes(shape, kv, block) - kv_bytes(shape, kv, 1)
    return (
        f"blocks of {block} tokens: {unfilled} slots a sequence are unfilled here ({human_gb(wasted)} in all), never "
        f"more than {block - 1} ({human_gb(most)} a sequence)."
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
