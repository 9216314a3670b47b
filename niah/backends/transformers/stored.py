"""What the files under ``caches/`` store: one declaration, read by the check before a run and by the cache itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from niah.kv.config import KVConfig

_DYNAMIC = frozenset({"dynamic"})


@dataclass(frozen=True)
class Stored:
    """Element types with the scales that they are stored with.

    Attributes:
        granularities: what shares a scale.
        scales: where scales come from; None where there are none.
        symmetric: with or without a zero point; None where both are the same.
        grouped: whether ``group_size`` is needed.
        beside_narrower: only beside a narrower type on the other side.
    """

    elements: frozenset[str]
    granularities: frozenset[str]
    scales: frozenset[str] | None = _DYNAMIC
    symmetric: bool | None = None
    grouped: bool = False
    beside_narrower: bool = False

    def objections(self, kv: KVConfig) -> Iterator[str]:
        """Why one of the elements is not stored as a setting asks; ends without any where it is."""
        if kv.granularity not in self.granularities:
            yield f"with scales of another kind than {kv.granularity}"
        elif self.beside_narrower and kv.k_dtype == kv.v_dtype:
            yield "beside a narrower type"
        elif self.scales is not None and kv.scales not in self.scales:
            yield f"with {' or '.join(sorted(self.scales))} scales, not {kv.scales}"
        elif self.symmetric is not None and kv.symmetric != self.symmetric:
            yield f"{'without' if self.symmetric else 'with'} a zero point"
        elif self.grouped and kv.group_size is None:
            yield "in groups, whose size is missing"


PLAIN = (
    Stored(
        frozenset({"bf16", "fp16", "fp32"}), frozenset({"none", "tensor", "token_head", "group_token", "kivi"}), None
    ),
)
INT8 = (
    Stored(frozenset({"int8"}), frozenset({"token_head"}), symmetric=True),
    # beside a narrower type in groups (k8v4) the 8-bit side keeps its one scale per token and head
    Stored(frozenset({"int8"}), frozenset({"group_token"}), beside_narrower=True),
)
INT4 = (Stored(frozenset({"int4"}), frozenset({"group_token"}), symmetric=False, grouped=True),)
FP8 = (
    Stored(frozenset({"fp8_e4m3", "fp8_e5m2"}), frozenset({"tensor"}), frozenset({"unit"})),
    Stored(frozenset({"fp8_e4m3", "fp8_e5m2"}), frozenset({"token_head"})),
)
KIVI = (Stored(frozenset({"int4", "int2"}), frozenset({"kivi"}), symmetric=False, grouped=True),)
QUANTO = (Stored(frozenset({"int4", "int2"}), frozenset({"quanto"}), grouped=True),)
HQQ = (Stored(frozenset({"int4", "int8"}), frozenset({"hqq"}), grouped=True),)

ALL = (*PLAIN, *INT8, *INT4, *FP8, *KIVI, *QUANTO, *HQQ)
ELEMENTS = frozenset(element for one in ALL for element in one.elements)
GRANULARITIES = frozenset(kind for one in ALL for kind in one.granularities)


def takes(one: Stored, kv: KVConfig, element: str) -> bool:
    """Whether ``one`` stores an element as the setting asks."""
    return element in one.elements and not list(one.objections(kv))


def objection(kv: KVConfig, element: str) -> str:
    """Why no file stores an element as the setting asks; empty where one does."""
    known = [one for one in ALL if element in one.elements]
    if any(takes(one, kv, element) for one in known):
        return ""
    alone = [one for one in known if not one.beside_narrower]
    near = [why for one in alone if kv.granularity in one.granularities for why in one.objections(kv)]
    if near:
        return f"{element} is stored {', or '.join(dict.fromkeys(near))}"
    kinds = sorted({kind for one in alone for kind in one.granularities})
    return f"{element} is stored with scales of the kind {' or '.join(kinds)}, not {kv.granularity}"
