"""Rows for the store's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from niah.store.schema import Row


@pytest.fixture
def row() -> Callable[..., Row]:
    """Makes an answered row; keyword arguments change it."""

    def build(cell_id: str = "c0", **changes: Any) -> Row:
        fields: dict[str, Any] = {
            "cell_id": cell_id,
            "pair_id": f"p-{cell_id}",
            "backend": "fake",
            "model": "m",
            "kv": "int8",
            "task": "multikey",
            "haystack": "noise",
            "length": 4096,
            "depth": 0.5,
            "trial": 0,
            "outcome": "answered",
            "correct": True,
            "score": 1.0,
        }
        return Row(**(fields | changes))

    return build
