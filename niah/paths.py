"""Paths as people write them."""

from __future__ import annotations

from pathlib import Path

from niah.errors import ConfigError


def as_path(text: str) -> Path:
    """A path as a user wrote it, home folder filled in.

    Raises:
        ConfigError: it cannot be one: an unknown user, a NUL, or longer than the system takes.
    """
    try:
        path = Path(text).expanduser()
        path.exists()
    except (OSError, RuntimeError, ValueError) as err:
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise ConfigError(f"{shown!r} cannot be a path: {str(err.args[-1] if err.args else err).rstrip('.')}.") from err
    return path
