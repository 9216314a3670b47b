"""Values in a server's reply: counts, numbers, log-probabilities, token ids and texts, read without trusting them.

A function named ``…_or_none`` leaves out what is not of its kind, for services whose replies differ; the others raise
``ValueError``, which ``niah.engines.http.faults.reading`` turns into a fault of the reply.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

# more than any context: larger numbers are no counts, and some do not even fit into a column of a table
MOST_TOKENS = 10**12
_MOST_IDS = 2**31
# engines write minus infinity as a finite number of this size or less; rounding may leave a little above zero
_LEAST_LOGPROB, _ROUNDING = -1e6, 1e-3
_COUNT_ENDS = ("tokens", "token_count")
_SHOWN_CHARACTERS = 200

T = TypeVar("T")


def part(data: Any, *path: str) -> Any:
    """A value deep in a reply, None when any step of the way is missing."""
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def count_or_none(value: Any) -> int | None:
    """A count of tokens or requests; None for what is none: missing, negative, text, more than any request holds."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if is_count else None


def count_at(found: Mapping[str, Any], name: str, default: T) -> int | T:
    """A count in a reply, ``default`` where there is none.

    Raises:
        ValueError: what is there is no count of tokens.
    """
    value = found.get(name)
    if value is None:
        return default
    count = count_or_none(value)
    if count is None:
        raise ValueError(name)
    return count


def odd_counts(usage: Any) -> tuple[str, ...]:
    """Names of the token counts in a reply that are there and are no counts."""
    if usage is None:
        return ()
    if not isinstance(usage, Mapping):
        return ("usage",)
    named = [name for name in usage if isinstance(name, str) and name.endswith(_COUNT_ENDS)]
    return tuple(name[:40] for name in named if usage[name] is not None and count_or_none(usage[name]) is None)


def number_at(found: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """A finite number in a reply.

    Raises:
        ValueError: what is there is none, or nothing is there and there is no ``default``.
    """
    value = found.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(name)
    return float(value)


def logprob_or_none(value: Any) -> float | None:
    """A natural log-probability; None for what is none: text, not finite, above zero, a stand-in for minus infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if _LEAST_LOGPROB <= value <= _ROUNDING else None


def logprob_of(value: Any) -> float | None:
    """A natural log-probability; None where there is none, or only a stand-in for minus infinity.

    Raises:
        ValueError: what is there is no log-probability.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= _ROUNDING:
        raise ValueError("logprob")
    return logprob_or_none(value)


def token_ids(values: Any) -> list[int]:
    """Token ids in a reply.

    Raises:
        ValueError: they are none.
    """
    found = list(values)
    if not all(type(value) is int and 0 <= value < _MOST_IDS for value in found):
        raise ValueError("token ids")
    return found


def text_at(found: Mapping[str, Any], name: str) -> str:
    """A text in a reply, empty where there is none.

    Raises:
        ValueError: what is there is no text.
    """
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(name)
    return value or ""


def shown(value: Any) -> str:
    """A value of a reply as it stands in a sentence."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return repr(text[:_SHOWN_CHARACTERS] + " …") if len(text) > _SHOWN_CHARACTERS else repr(value)
