"""The Hugging Face hub: whether it answers, found out in seconds, and its libraries kept quiet.

Left to themselves they try each file of a model several times with pauses in between, and write a line for each.
"""

from __future__ import annotations

import logging
import re
import threading
from typing import Any

from niah.errors import ConfigError

PATIENCE_S = 4.0
_LOGGERS = ("huggingface_hub", "datasets", "httpx", "httpx2", "httpcore", "httpcore2")


def require_cached_or_reachable(name: str, file: str, revision: str | None = None) -> None:
    """Return at once where a model's file is in the local cache, or when the hub answers.

    Args:
        name: hub id, ``org/name``.
        file: which every such model has, ``config.json``.

    Raises:
        ConfigError: the file is not here, and the hub is switched off or cannot be reached.
    """
    import huggingface_hub as library

    quiet()
    try:
        here = isinstance(library.try_to_load_from_cache(name, file, revision=revision), str)
    except ValueError as err:
        raise ConfigError(f"{name!r} is no folder and no hub id (org/name): {str(err).splitlines()[0]}") from err
    why = "HF_HUB_OFFLINE is set" if is_switched_off() else out_of_reach()
    if why is not None and not here:
        raise ConfigError(
            f"the model {name!r} is neither a folder nor in the hub's cache on this machine, and {why}. "
            "Give a folder, or download the model first."
        )


def out_of_reach() -> str | None:
    """Why the hub does not answer; None where it does, or where its library is told not to ask.

    A hub that does not answer is taken for switched off until this process ends: its library asks anew for every file
    otherwise, though what it has in its cache needs nobody.
    """
    from huggingface_hub import constants

    if is_switched_off() or (reason := unreachable(constants.ENDPOINT)) is None:
        return None
    constants.HF_HUB_OFFLINE = True
    return f"the hub at {constants.ENDPOINT} cannot be reached ({reason})"


def is_switched_off() -> bool:
    """Whether the hub's library was told, by ``HF_HUB_OFFLINE``, to ask nobody."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def unreachable(address: str, patience_s: float = PATIENCE_S) -> str | None:
    """Why nothing answers at an address, or None when something does, whatever it says."""
    found: list[str | None] = []
    worker = threading.Thread(target=lambda: found.append(_ask(address, patience_s)), daemon=True)
    worker.start()
    # looking up a name can take longer than any limit that the HTTP library knows
    worker.join(patience_s)
    return found[0] if found else f"no answer in {patience_s:g} s"


def _ask(address: str, patience_s: float) -> str | None:
    from huggingface_hub import get_session

    session: Any = get_session()
    try:
        session.head(address, timeout=patience_s)
    except Exception as err:  # noqa: BLE001 - the library's HTTP client, and so its errors, differ between releases
        return re.sub(r"^\[Errno [-\d]+\] ", "", (str(err).strip() or type(err).__name__).splitlines()[0]).rstrip(".")[
            :200
        ]
    return None


def quiet() -> None:
    """Failures are told once, by whoever called; a library's own lines would come on top of that."""
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
