"""The exception tree: each error says in one sentence what is wrong and carries the exit code it ends with.

NiahError
├─ ConfigError            2   unknown name or key, impossible combination
├─ MissingDependency      2   an extra is not installed; the message holds the install line
├─ ThresholdMissed        1   a bar that the user set was not reached
├─ BackendUnavailable     4   no device, no key, server not reachable
│  └─ MissingKey          4   no key: only a plan can do without
├─ BudgetExceeded         5   money, tokens or time limit reached; what is done is kept
├─ StoreError             6   a results folder cannot be read or written
└─ CellError              3   one cell failed; becomes ``failed(kind)`` on its row, never a wrong answer
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar


class NiahError(Exception):
    """Base of all errors that a user may see as one sentence."""

    exit_code: ClassVar[int] = 2


class ConfigError(NiahError):
    """Wrong use: an unknown name or key, or settings that cannot go together."""


class MissingDependency(NiahError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str, needed_for: str) -> None:
        super().__init__(f"{needed_for} needs the package {package!r}. Install it with: pip install 'niah-kv[{extra}]'")
        self.package = package
        self.extra = extra


class ThresholdMissed(NiahError):
    """A threshold set by the user was missed."""

    exit_code = 1


class BackendUnavailable(NiahError):
    """The engine or service cannot be reached or started on this machine."""

    exit_code = 4


class MissingKey(BackendUnavailable):
    """A service wants a key and none is set: nothing can be asked of it, though a run can be planned."""


class BudgetExceeded(NiahError):
    """A limit on money, tokens or time was reached."""

    exit_code = 5


class StoreError(NiahError):
    """A run folder cannot be written or read."""

    exit_code = 6


class CellError(NiahError):
    """One cell could not be answered. The runner turns it into a ``failed`` outcome on the row.

    Args:
        kind: short machine name, for instance ``out_of_memory`` or ``context_too_long``.
        message: a sentence for people.
        retryable: whether the same request may succeed later.
    """

    exit_code = 3

    def __init__(self, kind: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable


@contextmanager
def boundary(kind: str, what: str) -> Iterator[None]:
    """Give whatever escapes a plugin's code one type: a typed error passes, any other becomes ``CellError(kind)``."""
    try:
        yield
    except NiahError:
        raise
    except MemoryError as err:
        raise CellError("out_of_memory", f"{what}: out of memory") from err
    except Exception as err:  # the one place where everything is caught: a plugin's fault must not end a run
        raise CellError(kind, f"{what}: {type(err).__name__}: {err}") from err


def near(name: str, names: Iterable[str]) -> str:
    """A hint for a misspelt name: ``" Did you mean 'vllm'?"``, or the list when nothing is near."""
    options = sorted(names)
    close = difflib.get_close_matches(name.lower(), [o.lower() for o in options], n=1, cutoff=0.55)
    if close:
        match = next(o for o in options if o.lower() == close[0])
        return f" Did you mean {match!r}?"
    return f" Known: {', '.join(options)}." if options else ""


def listed(names: Sequence[str], last: str = "and") -> str:
    """Names in a sentence: ``a``, ``a and b``, ``a, b and c``; empty where there is none."""
    return f" {last} ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
