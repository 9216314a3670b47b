from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from niah import registry
from niah.errors import ConfigError


def test_names_without_importing() -> None:
    code = (
        "import sys; from niah import registry; "
        "found = {k: registry.names(k) for k in registry.KINDS}; "
        "assert 'transformers' in found['backends'] and 'multikey' in found['tasks'], found; "
        "assert 'int8' in found['kv'] and 'chronicle' in found['haystacks'] and 'exact' in found['scoring'], found; "
        "loaded = [m for m in sys.modules if m.startswith('niah.') and m.count('.') > 1]; assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_listed_plugin_loads_and_has_a_summary(kind: str) -> None:
    for name in registry.names(kind):
        plugin = registry.load(kind, name)
        assert plugin.summary
        assert plugin.name.replace("_", "-") == name.replace("_", "-")


def test_misspelt_name_gets_a_near_one() -> None:
    with pytest.raises(ConfigError, match=r"no backend named 'transfomers'. Did you mean 'transformers'\?"):
        registry.load("backends", "transfomers")


def test_plugin_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "my_task.py"
    path.write_text("from niah.tasks.passkey import PLUGIN\n")
    (plugin,) = registry.add_file(path)
    assert (plugin.kind, plugin.name) == ("tasks", "passkey")


@pytest.mark.parametrize("text", ["X = 1\n", "PLUGIN = 1\n", "PLUGINS = ()\n"])
def test_wrong_plugin_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(ConfigError, match="must define PLUGIN, or PLUGINS for several"):
        registry.add_file(path)
    with pytest.raises(ConfigError, match="does not exist"):
        registry.add_file(tmp_path / "missing.py")
