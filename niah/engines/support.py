"""What a backend declares that it can store and do: everything else is refused, in one sentence for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from niah.errors import listed
from niah.kv.aspects import ASPECTS, aspects
from niah.kv.config import KVConfig
from niah.types import Problem

# element and layout of an unquantized side
UNQUANTIZED = frozenset({("auto", "none"), ("bf16", "none"), ("fp16", "none"), ("fp32", "none")})


@dataclass(frozen=True, slots=True)
class Support:
    """What a backend honors.

    Attributes:
        formats: pairs of element type and layout that it stores, see ``Format.pair``; None takes all.
        aspects: names of ``ASPECTS``, or of a method that comes as a plugin.
        reason: why it honors no more, where its backend can say it better than a list of what is missing.
    """

    formats: frozenset[tuple[str, str]] | None = UNQUANTIZED
    aspects: frozenset[str] = frozenset()
    reason: str = ""

    def missing(self, kv: KVConfig) -> list[str]:
        """What a setting asks for that is not declared, in words."""
        found = []
        for side, stored in kv.sides:
            if self.formats is not None and stored.pair not in self.formats:
                found.append(f"{side} stored as {stored.label}")
        if len(found) == len(kv.sides) and kv.keys.label == kv.values.label:
            found = [f"keys and values stored as {kv.keys.label}"]
        return found + [ASPECTS.get(aspect, aspect) for aspect in aspects(kv) if aspect not in self.aspects]


# a backend that only pretends to have a cache
EVERYTHING = Support(formats=None, aspects=frozenset(ASPECTS))


def undeclared(kv: KVConfig, name: str, support: Support, others: Iterable[tuple[str, Support]]) -> Iterator[Problem]:
    """Why the backend ``name`` does not run a setting.

    Args:
        others: further backends with what they declare, one of which may run it.
    """
    missing = support.missing(kv)
    if not missing:
        return
    able = [other for other, its in others if its is not EVERYTHING and other != name and not its.missing(kv)]
    named = listed(able, "or")
    hint = f"Use --backend {named}." if able else "No backend has that; see niah list kv."
    if support.reason:
        yield Problem("kv", kv.name, support.reason, f"Drop --kv, or use --backend {named}." if able else "Drop --kv.")
        return
    for what in missing:
        yield Problem("kv", kv.name, f"the backend {name!r} has no {what}", hint)
