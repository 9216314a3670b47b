from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from niah import plugins
from niah.errors import ConfigError, MissingDependency


@pytest.mark.parametrize("name", plugins.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(plugins, name) is not None
    assert name in dir(plugins)


def test_what_is_listed_is_what_is_looked_up() -> None:
    own = {"get", "load", "names", "ConfigError", "MissingDependency"}
    assert set(plugins.__all__) == set(plugins._PLACES) | own
    assert plugins.__all__ == sorted(plugins.__all__)


def test_only_what_stores_a_cache_imports_torch() -> None:
    light = [name for name, module in plugins._PLACES.items() if not module.startswith(plugins._TORCH)]
    code = (
        "import sys; import niah; assert not [m for m in sys.modules if m.startswith('niah.')] or "
        "set(m for m in sys.modules if m.startswith('niah.')) == {'niah._version'}; "
        f"from niah.plugins import {', '.join(light)}, load, names; "
        "assert names('kv') and names('methods'); "
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules; "
        "from niah.plugins import CacheFormat; assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_format_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(plugins, "find_spec", lambda name: None if name == "torch" else find(name))
    with pytest.raises(MissingDependency, match=r"niah.plugins.CacheFormat needs the package 'torch'. Install it"):
        plugins.CacheFormat  # noqa: B018
    assert plugins.KVPreset.__name__ == "KVPreset"


def test_a_misspelt_name_gets_a_near_one() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'TaskPlugn'. Did you mean 'TaskPlugin'\?"):
        plugins.TaskPlugn  # noqa: B018
    with pytest.raises(ConfigError, match=r"no kind of plugin named 'task'. Did you mean 'tasks'\?"):
        plugins.names("task")
    with pytest.raises(ConfigError, match=r"no task named 'multykey'. Did you mean 'multikey'\?"):
        plugins.get("tasks", "multykey")


def test_a_notebook_loads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shouting.py"
    path.write_text(
        "from niah.plugins import Score, ScorerPlugin\n"
        "PLUGIN = ScorerPlugin('loud', 'in capitals', 1, lambda a, c: Score(1.0, True, 'loud', 'loud', 1))\n"
    )
    (plugin,) = plugins.load(str(path))
    assert (plugin.kind, plugin.name) == ("scoring", "loud")
    assert "loud" in plugins.names("scoring")
