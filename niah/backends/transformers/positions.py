"""Which models accept explicit token positions, which several questions behind one cached context need."""

from __future__ import annotations

import inspect
from typing import Any

# families whose attention computes distances from a token's cache slot or from the attention mask
ALIBI = frozenset({"bloom", "mpt"})


def position_problem(config: Any, kind: type | None) -> str:
    """Why a model does not accept explicit token positions; empty where it does.

    Args:
        config: the model's text config.
        kind: the class of the model; None where it is not known before it is loaded.
    """
    name = str(getattr(config, "model_type", "") or "this model")
    if name in ALIBI or getattr(config, "alibi", False):
        return (
            f"the model family {name!r} uses ALiBi, which takes distances from slots in the cache, not from positions"
        )
    if kind is not None and not _takes_positions(kind):
        return f"the model family {name!r} takes no position_ids: it counts positions by itself"
    return ""


def _takes_positions(kind: type) -> bool:
    return "position_ids" in inspect.signature(kind.forward).parameters  # type: ignore[attr-defined]
