"""Plugins by name: a file in the kind's folder, an entry point in ``niah.<kind>``, or ``--plugin FILE``.

``names`` lists without importing anything; ``load`` imports one module and takes its ``PLUGIN`` value.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from niah.errors import CellError, ConfigError, NiahError, boundary, near


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
_paths: dict[tuple[str, str], Path] = {}
_digests: dict[tuple[str, str], str] = {}
_file_names: set[str] = set()
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


@cache  # the machine's packages do not change under a process, and to look at all of them takes milliseconds
def _entry_points(kind: str) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=f"niah.{kind}"):
        found.setdefault(point.name, []).append(point)
    return found


@cache
def _built_in(kind: str) -> tuple[str, ...]:
    folder = Path(__file__).parents[1].joinpath(*KINDS[kind].package.split("."))
    return tuple(sorted(module.name for module in pkgutil.iter_modules([str(folder)])))


def _public(kind: str, module: str) -> str:
    # KV presets keep their underscores: fp8_e4m3 and q8_0 are what engines call them
    return module if kind == "kv" else module.replace("_", "-")


def _plain(name: str) -> str:
    # names are told apart without regard to case, dashes and underscores
    return name.lower().replace("-", "_")


def names(kind: str) -> list[str]:
    """Names of all plugins of a kind, sorted; nothing is imported."""
    own = {_public(kind, n) for n in _built_in(kind)}
    extra = {n for k, n in _from_files if k == kind}
    return sorted(own | set(_entry_points(kind)) | extra)


def added(kind: str) -> dict[str, Any]:
    """Plugins of a kind that files and installed packages bring, by name; those that cannot be loaded are left out."""
    found = {}
    for name in names(kind):
        if name.replace("-", "_") not in _built_in(kind):
            with suppress(ConfigError):  # told by ``load_all``, and by ``load`` where it is asked for
                found[name] = load(kind, name)
    return found


def load(kind: str, name: str) -> Any:
    """The ``PLUGIN`` of one name.

    Raises:
        ConfigError: no plugin has that name (a near one is offered), or an installed package's cannot be loaded.
    """
    if (kind, name) in _from_files:
        return _from_files[kind, name]
    module = name.replace("-", "_")
    if module in _built_in(kind):
        found = importlib.import_module(f"{KINDS[kind].package}.{module}")
        return (importlib.import_module(f"{found.__name__}.plugin") if hasattr(found, "__path__") else found).PLUGIN
    if name in _entry_points(kind):
        return _installed(kind, name)
    raise ConfigError(f"no {KINDS[kind].noun} named {name!r}.{near(name, names(kind))}")


def load_all(kind: str) -> tuple[dict[str, Any], list[str]]:
    """All plugins of a kind by name, and a sentence for each of an installed package that is left out, and why."""
    found: dict[str, Any] = {}
    faults = []
    for name in names(kind):
        points = _entry_points(kind).get(name, [])
        try:
            found[name] = load(kind, name)
        except ConfigError as err:
            if not points:
                raise
            faults.append(str(err))
            continue
        if name.replace("-", "_") in _built_in(kind):
            faults += [f"{_what(kind, name, point)} is left out: niah has one of that name itself." for point in points]
    return found, faults


def _what(kind: str, name: str, point: EntryPoint) -> str:
    package = point.dist.name if point.dist is not None else point.value
    return f"the {KINDS[kind].noun} {name!r} of the installed package {package!r}"


def _installed(kind: str, name: str) -> Plugin:
    points = _entry_points(kind)[name]
    what = _what(kind, name, points[0])
    if len(points) > 1:
        others = ", ".join(repr(point.dist.name) for point in points[1:] if point.dist is not None)
        raise ConfigError(f"{what} has the same name as that of {others}: uninstall all but one.")
    with _loading(what):
        plugin = points[0].load()
    if not isinstance(plugin, Plugin) or (plugin.kind, plugin.name) != (kind, name):
        raise ConfigError(f"{what} is no {KINDS[kind].noun} of that name; its entry point is {points[0].value!r}.")
    return plugin


def add_file(path: Path) -> tuple[Plugin, ...]:
    """Load the plugins of a Python file for this process; the file says ``PLUGIN``, or ``PLUGINS`` for several.

    A file that is given again is read again, and what it said before is forgotten.

    Raises:
        ConfigError: there is no such file, it cannot be run, it defines no plugin, or one whose name is taken.
    """
    what = f"plugin file {str(path)!r}"
    if not path.is_file():
        raise ConfigError(f"{what} {'is a folder' if path.is_dir() else 'does not exist'}.")
    if path.suffix != ".py":
        raise ConfigError(f"{what} is not a Python file: its name must end in .py.")
    with _loading(what):
        data = path.read_bytes()
    module = _run_file(path, data, what)
    one = getattr(module, "PLUGIN", None)
    said = getattr(module, "PLUGINS", () if one is None else (one,))
    plugins = tuple(said) if isinstance(said, list | tuple) else ()
    if not plugins or not all(isinstance(plugin, Plugin) and plugin.kind in KINDS for plugin in plugins):
        raise ConfigError(
            f"{what} must define PLUGIN, or PLUGINS for several: values such as KVPreset, CacheFormat, Method, "
            "TaskPlugin, HaystackPlugin, ScorerPlugin or BackendPlugin."
        )
    place, digest_of_file = path.resolve(), hashlib.sha256(data).hexdigest()[:16]
    for index, plugin in enumerate(plugins):
        _check_name(what, plugin, plugins[:index], place, digest_of_file)
    for key in [key for key, its in _paths.items() if its == place]:
        for table in (_from_files, _paths, _digests):
            table.pop(key, None)
    for plugin in plugins:
        key = plugin.kind, plugin.name
        _from_files[key], _paths[key], _digests[key] = plugin, place, digest_of_file
    _file_names.add(path.name)
    return plugins


def _check_name(what: str, plugin: Plugin, before: Sequence[Plugin], place: Path, digest_of_file: str) -> None:
    """Refuse a name that cannot be asked for, or that something else has: a name means one thing in all runs."""
    kind, name = plugin.kind, plugin.name
    its = f"{what}: the {KINDS[kind].noun} {name!r}"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"{its} needs a name of letters, digits, dots, dashes and underscores.")
    if any((other.kind, _plain(other.name)) == (kind, _plain(name)) for other in before):
        raise ConfigError(f"{its} is defined twice.")
    if _plain(name) in map(_plain, _built_in(kind)):
        raise ConfigError(f"{its} has the name of one of niah's own; give it another.")
    for other, points in _entry_points(kind).items():
        if _plain(other) == _plain(name):
            raise ConfigError(f"{its} has the name of {_what(kind, other, points[0])}; give it another.")
    for key, path in _paths.items():
        if (key[0], _plain(key[1])) == (kind, _plain(name)) and path != place and _digests.get(key) != digest_of_file:
            raise ConfigError(f"{its} has the name of the one in {str(path)!r}; give one of them another.")


@contextmanager
def _loading(what: str) -> Iterator[None]:
    """Whatever goes wrong in somebody's code becomes one sentence that says whose.

    Raises:
        ConfigError: the code raised something, or would end the program.
    """
    try:
        with boundary("plugin", what):
            yield
    except CellError as err:
        raise ConfigError(" ".join(f"{err}.".split())) from err
    except NiahError as err:
        raise ConfigError(f"{what}: {err}") from err
    except SystemExit as err:
        raise ConfigError(f"{what} ends the program instead of defining a plugin.") from err


def _run_file(path: Path, data: bytes, what: str) -> ModuleType:
    # the whole path is in the module's name: two files called my_task.py must not replace each other
    tag = hashlib.blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()
    module = ModuleType(f"niah_plugin_{path.stem}_{tag}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        # not by the import system, whose compiled copy is still that of before an edit within the same second
        with _loading(what):
            exec(compile(data, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    except ConfigError:
        del sys.modules[module.__name__]
        raise
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
