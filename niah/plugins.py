"""What the author of a plugin imports, in one place; and how a notebook loads a file of plugins.

``from niah.plugins import TaskPlugin, Case, Needle`` gives the values that docs/extend/ explains. A name is looked up
when it is asked for: what stores a cache (``CacheFormat``, ``Method`` and what belongs to them) needs torch, and the
rest does without.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from niah import registry
from niah.errors import ConfigError, MissingDependency, near

if TYPE_CHECKING:
    from niah.backends.transformers.cache.layer import CacheFormat, Codec, Side, StoredLayer
    from niah.backends.transformers.cache.packing import pack, unpack
    from niah.backends.transformers.method import Method, ModelChange, Running, Setting
    from niah.engines.base import BackendOptions, BackendPlugin, Engine, ModelInfo, Session, SessionRequest
    from niah.engines.support import Support
    from niah.errors import BackendUnavailable, CellError
    from niah.kv.config import AllTokens, Extra, Infini, KVConfig, Placement, Window
    from niah.kv.formats import (
        Block,
        Format,
        Grouped,
        Hqq,
        KiviKeys,
        KiviValues,
        Plain,
        Quanto,
        TensorScale,
        TokenHead,
    )
    from niah.kv.preset import KVPreset
    from niah.kv.vllm_formats import Nvfp4, RotatedTokenHead, TurboQuant, UltraQuant
    from niah.models.shape import ModelShape
    from niah.prompts.haystack import Haystack, HaystackOptions, HaystackPlugin
    from niah.prompts.normalize import is_settled
    from niah.prompts.scorer import ScorerPlugin
    from niah.prompts.task import Collides, ContextLayout, TaskOptions, TaskPlugin
    from niah.prompts.tokens import Template, WordTokenizer
    from niah.prompts.words import draw_keys, draw_values
    from niah.registry import Plugin
    from niah.types import Answer, Case, Failure, Host, KVUsage, Needle, Problem, Prompt, Reply, Score

__all__ = [
    "AllTokens",
    "Answer",
    "BackendOptions",
    "BackendPlugin",
    "BackendUnavailable",
    "Block",
    "CacheFormat",
    "Case",
    "CellError",
    "Codec",
    "Collides",
    "ConfigError",
    "ContextLayout",
    "Engine",
    "Extra",
    "Failure",
    "Format",
    "Grouped",
    "Haystack",
    "HaystackOptions",
    "HaystackPlugin",
    "Host",
    "Hqq",
    "Infini",
    "KVConfig",
    "KVPreset",
    "KVUsage",
    "KiviKeys",
    "KiviValues",
    "Method",
    "MissingDependency",
    "ModelChange",
    "ModelInfo",
    "ModelShape",
    "Needle",
    "Nvfp4",
    "Placement",
    "Plain",
    "Plugin",
    "Problem",
    "Prompt",
    "Quanto",
    "Reply",
    "RotatedTokenHead",
    "Running",
    "Score",
    "ScorerPlugin",
    "Session",
    "SessionRequest",
    "Setting",
    "Side",
    "StoredLayer",
    "Support",
    "TaskOptions",
    "TaskPlugin",
    "Template",
    "TensorScale",
    "TokenHead",
    "TurboQuant",
    "UltraQuant",
    "Window",
    "WordTokenizer",
    "draw_keys",
    "draw_values",
    "get",
    "is_settled",
    "load",
    "names",
    "pack",
    "unpack",
]

# where each name stands; those under niah.backends.transformers import torch
_TORCH = "niah.backends.transformers."
_NAMES: Mapping[str, tuple[str, ...]] = {
    "niah.backends.transformers.cache.layer": ("CacheFormat", "Codec", "Side", "StoredLayer"),
    "niah.backends.transformers.cache.packing": ("pack", "unpack"),
    "niah.backends.transformers.method": ("Method", "ModelChange", "Running", "Setting"),
    "niah.engines.base": ("BackendOptions", "BackendPlugin", "Engine", "ModelInfo", "Session", "SessionRequest"),
    "niah.errors": ("BackendUnavailable", "CellError"),
    "niah.engines.support": ("Support",),
    "niah.kv.config": ("AllTokens", "Extra", "Infini", "KVConfig", "Placement", "Window"),
    "niah.kv.formats": (
        "Block",
        "Format",
        "Grouped",
        "Hqq",
        "KiviKeys",
        "KiviValues",
        "Plain",
        "Quanto",
        "TensorScale",
        "TokenHead",
    ),
    "niah.kv.vllm_formats": ("Nvfp4", "RotatedTokenHead", "TurboQuant", "UltraQuant"),
    "niah.kv.preset": ("KVPreset",),
    "niah.models.shape": ("ModelShape",),
    "niah.prompts.haystack": ("Haystack", "HaystackOptions", "HaystackPlugin"),
    "niah.prompts.normalize": ("is_settled",),
    "niah.prompts.scorer": ("ScorerPlugin",),
    "niah.prompts.task": ("Collides", "ContextLayout", "TaskOptions", "TaskPlugin"),
    "niah.prompts.tokens": ("Template", "WordTokenizer"),
    "niah.prompts.words": ("draw_keys", "draw_values"),
    "niah.registry": ("Plugin",),
    "niah.types": (*("Answer", "Case", "Failure", "Host", "KVUsage", "Needle", "Problem", "Prompt", "Reply", "Score"),),
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Look a public name up where it is defined."""
    if name not in _PLACES:
        raise AttributeError(f"module 'niah.plugins' has no attribute {name!r}.{near(name, __all__)}")
    module = _PLACES[name]
    if module.startswith(_TORCH):
        for package in ("torch", "transformers"):
            if find_spec(package) is None:
                raise MissingDependency(package, "transformers", f"niah.plugins.{name}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return list(__all__)


def load(path: str | Path) -> tuple[Plugin, ...]:
    """Load the plugins of a Python file for this process, as ``--plugin FILE`` does; returns them.

    A file that has been edited may be loaded again, and takes the place of what it was.

    Raises:
        ConfigError: there is no such file, it cannot be run, it defines no plugin, or one whose name is taken.
    """
    return registry.add_file(Path(path))


def get(kind: str, name: str) -> Any:
    """The plugin of that name, to build another on it: ``replace(get("tasks", "multikey"), name="mine", make=…)``.

    Raises:
        ConfigError: no such kind or name, or an installed package's plugin cannot be loaded.
    """
    return registry.load(_kind(kind), name)


def names(kind: str) -> list[str]:
    """Names of all plugins of a kind, sorted: niah's own, those of installed packages, and those of loaded files.

    Args:
        kind: ``backends``, ``tasks``, ``haystacks``, ``scoring``, ``kv``, ``formats`` or ``methods``.

    Raises:
        ConfigError: no such kind.
    """
    return registry.names(_kind(kind))


def _kind(kind: str) -> str:
    if kind not in registry.KINDS:
        raise ConfigError(f"no kind of plugin named {kind!r}.{near(kind, registry.KINDS)}")
    return kind
