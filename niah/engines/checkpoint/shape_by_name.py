"""Finds a model's shape by name: a folder, a built-in model, or a hub id."""

from __future__ import annotations

import re

from niah.errors import CellError, ConfigError, boundary, near
from niah.models.hub import is_switched_off, require_cached_or_reachable
from niah.models.known import builtin_names, find_builtin
from niah.models.shape import ModelShape
from niah.paths import as_path

_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def resolve_shape(model: str) -> ModelShape:
    """The shape of a folder, a built-in model or a hub id, in this order.

    Raises:
        ConfigError: none of them, or a config that cannot be used.
    """
    folder = as_path(model)
    if folder.is_dir():
        return ModelShape.from_folder(folder)
    builtin = find_builtin(model)
    if builtin is not None:
        return builtin
    # only what can be a hub id waits for the network: a misspelt built-in name is answered at once
    if _HUB_ID.fullmatch(model) is None:
        raise ConfigError(f"{model!r} is no folder, built-in model or hub id (org/name).{_known(model)}")
    return _hub_shape(model)


def _known(model: str) -> str:
    return f"{near(model.rsplit('/', 1)[-1], builtin_names())} Or give a folder with a config.json."


def _hub_shape(model: str) -> ModelShape:
    try:
        from transformers import AutoConfig
    except ImportError as err:
        raise ConfigError(
            f"{model!r} is no folder and no built-in model, and asking the hub needs the package 'transformers': "
            f"pip install 'niah-kv[transformers]'.{_known(model)}"
        ) from err
    try:
        if not is_switched_off():  # then the library answers at once
            require_cached_or_reachable(model, "config.json")
    except ConfigError as err:
        raise ConfigError(f"{err}{_known(model)}") from err
    try:
        with boundary("hub", model):
            config = AutoConfig.from_pretrained(model)
    except CellError as err:
        reason = str(err.__cause__ or err).strip().splitlines()
        raise ConfigError(
            f"{model!r} is no folder and no built-in model, and its config could not be loaded from the hub "
            f"({reason[0] if reason else 'no reason given'}).{_known(model)}"
        ) from err
    return ModelShape.from_config(config.to_dict(), model)
