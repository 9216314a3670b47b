"""What was asked of a KV setting beside what was in force, and whether that differs where it can."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from niah.kv.config import KVConfig
from niah.kv.formats import ELEMENT_BITS, SIXTEEN_BIT
from niah.kv.identity import canonical

# engines and torch spell dtypes out
_SPELLINGS = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "none": "",
    "false": "no",
    "true": "yes",
}
_LEFT_OPEN = ("", "auto")
# what engines say in words of their own, at its beginning
_ALSO = {("scales", "unit"): ("1",), ("memory", "infini"): ("compressive",)}
# say how a type of fewer than 16 bits is stored, and nothing of another
_OF_SCALES = frozenset({"granularity", "group_size", "symmetric", "scales", "rounding", "residual", "prefill_reads"})
_TYPES = frozenset({"k_dtype", "v_dtype"})
_COUNTED = re.compile(r"(.+?) \(\d+ layers?\)")


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One field of a KV setting: what was asked and what was in force; ``differs`` when both are known and unequal."""

    name: str
    asked: str
    effective: str
    differs: bool


def setting_lines(asked: Mapping[str, Any], effective: Mapping[str, Any]) -> list[SettingLine]:
    """Asked and effective values side by side, asked fields first.

    A field that was left at its default and that the engine does not report is left out, and so is what a setting
    cannot have been asked: scales of a 16-bit cache. What was asked as ``auto`` or left open cannot differ. The engine
    may report a field as ``k_dtype`` or ``kv.k_dtype``.
    """
    defaults = {name: value_text(value) for name, value in canonical(KVConfig("")).items()}
    lines = []
    seen = set()
    for name, value in asked.items():
        key = name if name in effective else f"kv.{name}"
        wanted, got = value_text(value), value_text(effective[key]) if key in effective else ""
        if name == "name" or (key not in effective and wanted == defaults.get(name)):
            continue
        if name in _OF_SCALES and not _narrow(asked):
            continue
        seen.add(key)
        differs = key in effective and wanted not in _LEFT_OPEN and not _same(name, wanted, got, asked)
        lines.append(SettingLine(name, wanted, got, differs))
    lines += [
        SettingLine(key, "", value_text(value), differs=False) for key, value in effective.items() if key not in seen
    ]
    return lines


def _narrow(asked: Mapping[str, Any]) -> bool:
    """Whether keys or values were asked in fewer than 16 bits, by a type that is known or not."""
    types = [value_text(asked.get(side)) for side in _TYPES]
    return any(kind not in _LEFT_OPEN and ELEMENT_BITS.get(kind, 0) < 16 for kind in types)


def _same(name: str, wanted: str, got: str, asked: Mapping[str, Any]) -> bool:
    if wanted == got or any(got.startswith(word) for word in _ALSO.get((name, wanted), ())):
        return True
    if name in _TYPES:
        # layers that the setting skips keep 16 bits, and the engine counts each kind
        found = {match[1] for part in got.split(", ") if (match := _COUNTED.fullmatch(part))}
        skipped = set(SIXTEEN_BIT) if asked.get("skip_layers") else set()
        return bool(found) and wanted in found and found <= {wanted, *skipped}
    return re.split(r",\s*", wanted) == re.split(r",\s*", got)


def value_text(value: Any) -> str:
    """A manifest's value in words that can be compared: dtypes in short form, lists joined, nothing for None."""
    if isinstance(value, (list, tuple)):
        return ", ".join(value_text(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, float) and value.is_integer() and math.isfinite(value):
        value = int(value)
    text = str(value).removeprefix("torch.")
    return _SPELLINGS.get(text.lower(), text)
