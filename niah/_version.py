"""The version of niah, in this one place."""

from __future__ import annotations

__version__ = "0.1.0"
