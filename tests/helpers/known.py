"""A value that must be there: rows and records leave out what was not measured."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """The value, which is not None; else the test fails where it reads it."""
    assert value is not None
    return value
