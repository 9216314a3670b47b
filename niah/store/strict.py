"""JSON from files that anybody may have written: finite numbers, whole ones within 64 bits, and no endless nesting."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

MOST_INT = 2**63 - 1
MOST_DEPTH = 40
_SHOWN = 24


def strict_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not JSON, not UTF-8, or holds NaN, an infinity, a whole number beyond 64 bits (which no column
            of a table holds), or brackets nested deeper than 40.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole)
    except RecursionError as err:
        raise ValueError("its brackets are nested too deeply") from err
    _check_depth(value)
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{_short(text)} is too large for a number")
    return value


def _whole(text: str) -> int:
    # 20 characters are a sign and 19 digits: what is longer is not even converted
    value = int(text) if len(text) <= 20 else MOST_INT + 1
    if not -MOST_INT <= value <= MOST_INT:
        raise ValueError(f"{_short(text)} is a whole number beyond 64 bits")
    return value


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MOST_DEPTH):
        inner: list[Any] = []
        for part in level:
            if isinstance(part, Mapping):
                inner += part.values()
            elif isinstance(part, list):
                inner += part
        level = inner
        if not level:
            return
    raise ValueError("its brackets are nested too deeply")
