"""Plugins by name: a file in the kind's folder, an entry point in ``niah.<kind>``, or ``--plugin FILE``.

``names`` lists without importing anything; ``load`` imports one module and takes its ``PLUGIN`` value.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from niah.errors import CellError, ConfigError, boundary, near


@dataclass(frozen=True)
class Kind:
    """A kind of plugin.

    Attributes:
        package: where the built-in ones lie: a module each, or a folder whose ``plugin`` module is the face. Nothing
            else lies there.
        noun: what one is called in messages.
    """

    package: str
    noun: str


@dataclass(frozen=True)
class Plugin:
    """What all plugins have.

    Attributes:
        kind: one of ``KINDS``.
        name: by which it is asked for.
        summary: one line for lists.
    """

    kind: ClassVar[str] = ""
    name: str
    summary: str


KINDS: Mapping[str, Kind] = {
    "backends": Kind("niah.backends", "backend"),
    "tasks": Kind("niah.tasks", "task"),
    "haystacks": Kind("niah.haystacks", "haystack"),
    "scoring": Kind("niah.scoring", "scorer"),
    "kv": Kind("niah.kv.presets", "KV setting"),
    "formats": Kind("niah.backends.transformers.formats", "stored format"),
    "methods": Kind("niah.backends.transformers.methods", "cache method"),
}
_from_files: dict[tuple[str, str], Any] = {}
_digests: dict[tuple[str, str], str] = {}
_file_names: set[str] = set()


@cache  # the machine's packages do not change under a process, and to look at all of them takes milliseconds
def _entry_points(kind: str) -> dict[str, Any]:
    return {e.name: e for e in entry_points(group=f"niah.{kind}")}


@cache
def _built_in(kind: str) -> tuple[str, ...]:
    folder = Path(__file__).parents[1].joinpath(*KINDS[kind].package.split("."))
    return tuple(sorted(module.name for module in pkgutil.iter_modules([str(folder)])))


def _public(kind: str, module: str) -> str:
    # KV presets keep their underscores: fp8_e4m3 and q8_0 are what engines call them
    return module if kind == "kv" else module.replace("_", "-")


def names(kind: str) -> list[str]:
    """Names of all plugins of a kind, sorted; nothing is imported."""
    own = {_public(kind, n) for n in _built_in(kind)}
    extra = {n for k, n in _from_files if k == kind}
    return sorted(own | set(_entry_points(kind)) | extra)


def load(kind: str, name: str) -> Any:
    """The ``PLUGIN`` of one name.

    Raises:
        ConfigError: no plugin has that name (a near one is offered), or its module has no ``PLUGIN``.
    """
    if (kind, name) in _from_files:
        return _from_files[kind, name]
    module = name.replace("-", "_")
    if module in _built_in(kind):
        found = importlib.import_module(f"{KINDS[kind].package}.{module}")
        return (importlib.import_module(f"{found.__name__}.plugin") if hasattr(found, "__path__") else found).PLUGIN
    points = _entry_points(kind)
    if name in points:
        return points[name].load()
    raise ConfigError(f"no {KINDS[kind].noun} named {name!r}.{near(name, names(kind))}")


def add_file(path: Path) -> tuple[Plugin, ...]:
    """Load the plugins of a Python file for this process; the file says ``PLUGIN``, or ``PLUGINS`` for several.

    Raises:
        ConfigError: there is no such file, it cannot be run, or it defines no plugin.
    """
    if not path.is_file():
        raise ConfigError(f"plugin file {str(path)!r} does not exist.")
    module = _run_file(path)
    one = getattr(module, "PLUGIN", None)
    plugins = tuple(getattr(module, "PLUGINS", () if one is None else (one,)))
    if not plugins or not all(isinstance(plugin, Plugin) and plugin.kind in KINDS for plugin in plugins):
        raise ConfigError(
            f"plugin file {str(path)!r} must define PLUGIN, or PLUGINS for several: values such as KVPreset, "
            "CacheFormat, Method, TaskPlugin, HaystackPlugin, ScorerPlugin or BackendPlugin."
        )
    digest_of_file = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    for plugin in plugins:
        _from_files[plugin.kind, plugin.name] = plugin
        _digests[plugin.kind, plugin.name] = digest_of_file
    _file_names.add(path.name)
    return plugins


def _run_file(path: Path) -> ModuleType:
    # the whole path is in the module's name: two files called my_task.py must not replace each other
    tag = hashlib.blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()
    spec = importlib.util.spec_from_file_location(f"niah_plugin_{path.stem}_{tag}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"plugin file {str(path)!r} is not a Python module.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        with boundary("plugin", f"plugin file {str(path)!r}"):
            spec.loader.exec_module(module)
    except CellError as err:
        raise ConfigError(f"{err}.") from err
    return module


def has_file(path: str) -> bool:
    """Whether a plugin was loaded in this process from a file of that name, wherever it lies."""
    return path.replace("\\", "/").rpartition("/")[2] in _file_names


def digest(kind: str, name: str) -> str:
    """Digest of the file that a plugin was loaded from with ``add_file``; empty for built-in and installed ones.

    It goes into the identity of cells, so that editing the file makes new cells; installed plugins say ``version``.
    """
    return _digests.get((kind, name), "")


def digests(kind: str) -> dict[str, str]:
    """Digests of all plugins of a kind that were loaded from files, by their names."""
    return {name: found for (own, name), found in sorted(_digests.items()) if own == kind}
