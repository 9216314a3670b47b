"""The grid of a run: lengths and depths as people write them, cells, and the hashes that name them."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from niah.errors import ConfigError
from niah.types import JSON

K_TOKENS = 1024
M_TOKENS = K_TOKENS * K_TOKENS
MAX_LENGTH = 1024 * M_TOKENS
MAX_LENGTHS = 1000
MAX_DEPTHS = 1001

_LENGTH = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,15})?)(?P<unit>[kKmM]?)\Z", re.ASCII)
_COUNT = re.compile(r"\d{1,9}\Z", re.ASCII)
_PERCENT = re.compile(r"(?P<number>[+-]?\d{1,15}(?:\.\d{1,15})?)%?\Z", re.ASCII)
_UNITS = {"": 1, "k": K_TOKENS, "m": M_TOKENS}
# a needle that lies farther from the depth that was asked, as a share of the text, is told
DEPTH_TOLERANCE = 0.02
_TOLD = 3
# inner steps of a range are rounded to whole multiples of this, so that tables stay readable
_STEP_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Cell:
    """One square of the heatmap, once: a KV setting (its label), length in tokens, depth 0-1 and trial number."""

    kv: str
    length: int
    depth: float
    trial: int


def parse_lengths(spec: str | int | Sequence[str | int]) -> tuple[int, ...]:
    """Lengths in tokens, ascending, without repeats.

    ``4k..128k`` doubles from the first and always ends with the last; ``4k..128k:8`` takes eight geometric steps,
    both ends among them (inner steps are rounded to 64 tokens from 1k on); commas join lengths and ranges;
    k is 1,024 and m is 1,048,576.

    Raises:
        ConfigError: not a length, zero, above 1024m, a descending range, or more than 1,000 lengths.
    """
    text = spec if isinstance(spec, str) else str(spec) if isinstance(spec, int) else ",".join(str(s) for s in spec)
    lengths: set[int] = set()
    for item in text.split(","):
        lengths.update(_range(item.strip(), text) if ".." in item else (_length(item.strip(), text),))
    if len(lengths) > MAX_LENGTHS:
        raise ConfigError(f"lengths {text!r} are {len(lengths)} lengths; ask for at most {MAX_LENGTHS}.")
    return tuple(sorted(lengths))


def _length(item: str, spec: str) -> int:
    match = _LENGTH.match(item)
    if match is None:
        raise ConfigError(f"lengths {spec!r}: {item!r} is not a number of tokens; write 4096, 4k, 4k,16k or 4k..128k.")
    tokens = float(match["number"]) * _UNITS[match["unit"].lower()]
    if tokens != int(tokens):
        raise ConfigError(f"lengths {spec!r}: {item!r} is {tokens:g} tokens; give a whole number of tokens.")
    if tokens == 0:
        raise ConfigError(f"lengths {spec!r}: {item!r} is zero; a length is at least 1 token.")
    if tokens > MAX_LENGTH:
        raise ConfigError(f"lengths {spec!r}: {item!r} is more than the {MAX_LENGTH} tokens that a prompt can have.")
    return int(tokens)


def _range(item: str, spec: str) -> list[int]:
    bounds, colon, count = item.partition(":")
    first, _, last = bounds.partition("..")
    low, high = _length(first.strip(), spec), _length(last.strip(), spec)
    if high < low:
        raise ConfigError(f"lengths {spec!r}: the range {item!r} descends; write the smaller length first.")
    if not colon:
        doubled = [low << step for step in range((high // low).bit_length())]
        return [*doubled, high]
    if not _COUNT.match(count.strip()) or not 2 <= int(count) <= MAX_LENGTHS:
        raise ConfigError(f"lengths {spec!r}: {count!r} steps; give a whole number from 2 to {MAX_LENGTHS} after ':'.")
    return _geometric(low, high, int(count), spec)


def _geometric(low: int, high: int, count: int, spec: str) -> list[int]:
    unit = _STEP_TOKENS if low >= K_TOKENS else 1
    ratio = high / low
    inner = [round(low * ratio ** (step / (count - 1)) / unit) * unit for step in range(1, count - 1)]
    lengths = [low, *inner, high]
    if any(a >= b for a, b in pairwise(lengths)):
        raise ConfigError(f"lengths {spec!r}: {count} steps do not fit between {low} and {high} tokens; ask for fewer.")
    return lengths


def length_label(length: int) -> str:
    """The short form that ``parse_lengths`` reads back exactly: 512 is ``512``, 4096 is ``4k``, 2²⁰ is ``1m``."""
    for unit, tokens in (("m", M_TOKENS), ("k", K_TOKENS)):
        if length and length % tokens == 0:
            return f"{length // tokens}{unit}"
    return str(length)


def format_lengths(lengths: Sequence[int]) -> str:
    """A list that ``parse_lengths`` reads back exactly."""
    return ",".join(length_label(length) for length in lengths)


def parse_depths(spec: str | int | Sequence[str | int | float]) -> tuple[float, ...]:
    """Depths 0-1, ascending, without repeats, rounded to six digits.

    ``11`` is eleven even depths from 0 to 1 (``1`` is the middle); ``0,50,100`` or ``50%`` are percent;
    ``sigmoid:11`` is eleven depths that lie denser towards both ends: even percents p through the logistic curve
    1 / (1 + exp(-(p - 50) / 10)), with the ends put on 0 and 1.

    Raises:
        ConfigError: not a number, none at all, outside 0-100 percent, or fractions where percent are meant.
    """
    text = spec if isinstance(spec, str) else str(spec) if isinstance(spec, int) else ",".join(str(s) for s in spec)
    text = text.strip()
    if text.startswith("sigmoid:"):
        even = _even(text.removeprefix("sigmoid:").strip(), text)
        return tuple(_logistic(depth) for depth in even)
    if _COUNT.match(text):
        return _even(text, text)
    return _percents(text)


def _even(count: str, spec: str) -> tuple[float, ...]:
    if not _COUNT.match(count) or not 1 <= int(count) <= MAX_DEPTHS:
        hint = "write 0% for the single depth 0" if count == "0" else "or a list of percent such as 0,50,100"
        raise ConfigError(f"depths {spec!r}: {count!r} depths; give a whole number from 1 to {MAX_DEPTHS}, {hint}.")
    number = int(count)
    if number == 1:
        return (0.5,)
    return tuple(round(step / (number - 1), 6) for step in range(number))


def _logistic(depth: float) -> float:
    if depth in {0.0, 1.0}:
        return depth
    return round(1 / (1 + math.exp(-(100 * depth - 50) / 10)), 6)


def _percents(spec: str) -> tuple[float, ...]:
    percents: list[float] = []
    for raw in spec.split(","):
        item = raw.strip()
        match = _PERCENT.match(item)
        if match is None:
            raise ConfigError(
                f"depths {spec!r}: {item!r} is not a number; write a count (11), percent (0,50,100) or sigmoid:11."
            )
        percent = float(match["number"])
        if not 0 <= percent <= 100:
            raise ConfigError(f"depths {spec!r}: {item!r} is outside 0-100 percent; 0 is the start and 100 the end.")
        percents.append(percent)
    # 0,0.5,1 is far more often meant as fractions than as half a percent and one percent
    if "%" not in spec and max(percents) <= 1 and any(p != int(p) for p in percents):
        raise ConfigError(
            f"depths {spec!r} look like fractions, but depths are percent; "
            f"write {','.join(f'{100 * p:g}' for p in percents)}{'%' if len(percents) == 1 else ''}, or add % signs."
        )
    return tuple(sorted({round(percent / 100, 6) for percent in percents}))


@dataclass(frozen=True, slots=True)
class OffDepth:
    """A depth (0-1) at a length in tokens whose needles lie at another, ``real``, for want of a place nearer to it."""

    length: int
    depth: float
    real: float

    def to_json(self) -> dict[str, float]:
        """As ``plan --json`` and ``run.json`` have it."""
        return {"length": self.length, "depth": self.depth, "depth_real": round(self.real, 6)}


def is_off(depth: float, real: float | None) -> bool:
    """Whether a needle lies so far from its depth that it has to be told."""
    return real is not None and abs(real - depth) > DEPTH_TOLERANCE


def off_depths(places: Iterable[tuple[int, float, float]]) -> tuple[OffDepth, ...]:
    """Of needles given by length, asked and real depth, the squares whose mean real depth is off, ascending."""
    squares: dict[tuple[int, float], list[float]] = {}
    for length, depth, real in places:
        squares.setdefault((length, depth), []).append(real)
    means = (OffDepth(*square, math.fsum(reals) / len(reals)) for square, reals in sorted(squares.items()))
    return tuple(mean for mean in means if is_off(mean.depth, mean.real))


def counted(count: int, noun: str) -> str:
    """A number with its noun: ``1 cell``, ``1,200 cells``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def off_words(off: Sequence[OffDepth], squares: int) -> str:
    """How many of the squares are off, and the widest: the end of a sentence."""
    widest = sorted(off, key=lambda item: (-round(abs(item.real - item.depth), 6), item.length, item.depth))[:_TOLD]
    told = ", ".join(
        f"{100 * item.depth:.4g} % at {100 * item.real:.1f} % ({length_label(item.length)})" for item in widest
    )
    more = f" and {len(off) - len(widest):,} more" if len(off) > len(widest) else ""
    verb = "lies" if len(off) == 1 else "lie"
    return (
        f"{len(off):,} of {squares:,} {verb} more than {100 * DEPTH_TOLERANCE:g} points from where asked: {told}{more}"
    )


def identity(parts: Mapping[str, JSON]) -> str:
    """First 16 hex digits of BLAKE2b over canonical JSON: keys sorted, no spaces, floats by ``repr``.

    Raises:
        ValueError: a part is NaN or infinite. TypeError: a part is not JSON.
    """
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(canonical.encode()).hexdigest()[:16]


def seed_from(*parts: str | int | float) -> int:
    """A 64-bit seed that depends on the parts and their order alone; equal in every process and on every machine."""
    canonical = json.dumps(parts, separators=(",", ":"), allow_nan=False)
    return int.from_bytes(hashlib.blake2b(canonical.encode(), digest_size=8).digest(), "big")
