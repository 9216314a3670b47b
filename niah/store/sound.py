"""Validation of ``run.json``: whether it has the shape that readers rely on. A folder may come from anybody."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from niah.errors import StoreError

_KINDS: dict[str, tuple[type, ...]] = {"text": (str,), "number": (int, float), "flag": (bool,), "list": (list,)}
_WORDS = {"text": "a text", "number": "a number", "flag": "true or false", "list": "a list", "object": "an object"}

# what each key holds, where it is there and not null; "*" stands for every key or place
_SHAPE: dict[str, Any] = {
    **dict.fromkeys(("niah", "reference", "command", "status", "stopped_by"), "text"),
    **dict.fromkeys(("started_at", "finished_at", "resumed_at"), "text"),
    **{key: {} for key in ("hardware", "versions", "prices", "adaptive", "difficulty", "rebuild")},
    "schema": "number",
    "asked": {
        **{key: {} for key in ("config", "backend_options", "task_options", "grid")},
        **dict.fromkeys(("backend", "model", "task", "haystack", "lengths_text"), "text"),
        "kv": ["text"],
    },
    "shard": {"index": "number", "count": "number", "whole": "text"},
    "model": {"name": "text", "revision": "text", "template": "text", "shape": {}, "context_tokens": "number"},
    "haystack": {"name": "text", "digest": "text"},
    "tokenizer": {"name": "text", "digest": "text", "assembly": "text"},
    "questions": {"*": "text"},
    "plan": {"*": "number"},
    "spent": {"*": "number"},
    "settings": {
        "*": {
            "asked": {},
            "effective": {},
            "broken": "flag",
            "formula": "text",
            "canary": {"state": "text", "why": "text", "correct": "number", "asked": "number", "answers": ["text"]},
        }
    },
    "reuse_check": {"*": {}},
    "rescored": [{}],
    "merged_from": [{"run": "text", "shard": {"index": "number", "count": "number"}, "plan": {}, "spent": {}}],
}


def check_manifest(data: Mapping[str, Any], path: Path) -> None:
    """Look at every key that a reader uses.

    Args:
        path: of the run folder.

    Raises:
        StoreError: one holds something else than it should; the message names it.
    """
    try:
        _check(data, _SHAPE, "")
    except ValueError as err:
        file = str(path / "run.json")
        raise StoreError(f"{file!r} is not as niah writes it: {err}. Restore it, or run again with --fresh.") from err


def _check(value: Any, shape: Any, where: str) -> None:
    if value is None:
        return
    if isinstance(shape, str):
        if not isinstance(value, _KINDS[shape]) or (isinstance(value, bool) and shape == "number"):
            raise _wrong(where, shape, value)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise _wrong(where, "list", value)
        for place, item in enumerate(value):
            _check_present(item, shape[0], f"{where}.{place}")
    elif not isinstance(value, Mapping):
        raise _wrong(where, "object", value)
    else:
        for key, item in value.items():
            inner = shape.get(key, shape.get("*"))
            if inner is not None:
                _check(item, inner, f"{where}.{key}" if where else key)


def _check_present(value: Any, shape: Any, where: str) -> None:
    if value is None:
        raise _wrong(where, "object" if isinstance(shape, dict) else str(shape), value)
    _check(value, shape, where)


def _wrong(where: str, kind: str, value: Any) -> ValueError:
    shown = where if len(where) <= 80 else f"{where[:80]}…"
    return ValueError(f"{shown!r} holds {type(value).__name__} where {_WORDS[kind]} belongs")
