"""Plugins by name: a file in the kind's folder, an entry point in ``niah.<kind>``, or ``--plugin FILE``.

``names`` lists without importing anything; ``load`` imports one module and takes its ``PLUGIN`` value.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import pkgutil
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from niah.errors import CellError, ConfigError, boundary, near

KINDS = ("backends", "tasks", "haystacks", "scoring", "kv")
# support modules that live beside the plugins of a kind
NOT_PLUGINS = {
    "backends": {"base", "caches"},
    "tasks": {"base", "words"},
    "haystacks": {"base", "breaks", "builder", "graphemes", "segments", "sentences"},
    "scoring": {"base", "normalize"},
    "kv": {"base", "combine", "formula", "ladder", "memory", "parse", "shape", "table", "zoo"},
}
_from_files: dict[tuple[str, str], Any] = {}
_digests: dict[tuple[str, str], str] = {}
_file_names: set[str] = set()


@cache  # the machine's packages do not change under a process, and to look at all of them takes milliseconds
def _entry_points(kind: str) -> dict[str, Any]:
    return {e.name: e for e in entry_points(group=f"niah.{kind}")}


@cache
def _built_in(kind: str) -> tuple[str, ...]:
    package = Path(__file__).parent / kind
    found = (m.name for m in pkgutil.iter_modules([str(package)]))
    return tuple(sorted(n for n in found if n not in NOT_PLUGINS[kind] and not n.startswith("_")))


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
        return importlib.import_module(f"niah.{kind}.{module}").PLUGIN
    points = _entry_points(kind)
    if name in points:
        return points[name].load()
    singular = {
        "tasks": "task",
        "backends": "backend",
        "haystacks": "haystack",
        "scoring": "scorer",
        "kv": "KV setting",
    }
    raise ConfigError(f"no {singular[kind]} named {name!r}.{near(name, names(kind))}")


def add_file(path: Path) -> tuple[str, str]:
    """Load a plugin from a file for this process; the file says ``KIND`` and ``PLUGIN``. Returns (kind, name)."""
    if not path.is_file():
        raise ConfigError(f"plugin file {str(path)!r} does not exist.")
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
    kind, plugin = getattr(module, "KIND", None), getattr(module, "PLUGIN", None)
    if kind not in KINDS or plugin is None or not hasattr(plugin, "name") or not hasattr(plugin, "summary"):
        kinds = ", ".join(KINDS)
        raise ConfigError(
            f"plugin file {str(path)!r} must define PLUGIN, a plugin value of niah, and KIND, one of {kinds}."
        )
    name = str(plugin.name)
    _from_files[kind, name] = plugin
    _file_names.add(path.name)
    _digests[kind, name] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return kind, name


def has_file(path: str) -> bool:
    """Whether a plugin was loaded in this process from a file of that name, wherever it lies."""
    return path.replace("\\", "/").rpartition("/")[2] in _file_names


def digest(kind: str, name: str) -> str:
    """Digest of the file that a plugin was loaded from with ``add_file``; empty for built-in and installed ones.

    It goes into the identity of cells, so that editing the file makes new cells; installed plugins say ``version``.
    """
    return _digests.get((kind, name), "")
