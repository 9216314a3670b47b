"""niah: what a KV-cache setting costs in retrieval, and what it saves in memory.

``niah.run(...)`` measures, ``niah.load(path)`` reads a run folder back; both give a ``Run``. ``niah.compare(...)`` says
whether settings or runs differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from niah._version import __version__

__all__ = ["Run", "__version__", "compare", "load", "merge", "run"]

if TYPE_CHECKING:
    from niah.api import Run, compare, load, merge, run


def __getattr__(name: str) -> Any:
    """Resolve the public names late, so that ``import niah`` costs nothing."""
    if name in ("Run", "compare", "load", "merge", "run"):
        from niah import api

        return getattr(api, name)
    raise AttributeError(f"module 'niah' has no attribute {name!r}")
