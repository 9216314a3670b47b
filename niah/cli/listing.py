"""``niah list``: what there is, and what runs where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from niah.cli.options import Json

WHAT = ("backends", "tasks", "haystacks", "scorers", "kv", "models", "runs")


def list_(
    what: Annotated[str, typer.Argument(help=" | ".join(WHAT))],
    results: Annotated[Path, typer.Option("--out", "-o", help="Folder of runs, for 'runs'.")] = Path("results"),
    model: Annotated[
        str, typer.Option("--model", help="For 'kv': the model that settings are checked for.")
    ] = "smollm2",
    as_json: Json = False,
) -> None:
    """Names with a line each; 'kv' asks every backend what it can run on this machine, and why not."""
    from niah.errors import ConfigError, near

    if what not in WHAT:
        raise ConfigError(f"nothing to list under {what!r}.{near(what, WHAT)}")
    document = _document(what, results, model)
    if as_json:
        typer.echo(json.dumps(document))
        return
    for entry in next(iter(document.values())):
        _print(what, entry)


def _document(what: str, results: Path, model: str) -> dict[str, list[dict[str, Any]]]:
    from niah import registry

    if what == "kv":
        return {"presets": _presets(model)}
    if what == "models":
        return {"models": _models()}
    if what == "runs":
        return {"runs": _runs(results)}
    kind = "scoring" if what == "scorers" else what
    return {what: [_entry(registry.load(kind, name), name) for name in registry.names(kind)]}


def _entry(plugin: Any, name: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "summary": plugin.summary}
    options = getattr(plugin, "options", None)
    if options is not None:
        fields = options.model_fields
        entry["options"] = {k: str(f.get_default(call_default_factory=True)) for k, f in fields.items()}
    return entry


def _presets(model: str) -> list[dict[str, Any]]:
    from niah import registry
    from niah.cli.memory import resolve_shape
    from niah.kv.parse import parse_one
    from niah.runner.host import this_host

    shape, host = resolve_shape(model), this_host()
    backends = {name: registry.load("backends", name) for name in registry.names("backends")}
    presets = []
    for name in registry.names("kv"):
        preset = registry.load("kv", name)
        required = [k for k, default in (preset.parameters or {}).items() if default is None]
        shown = f"{name}({','.join(f'{k}=512' for k in required)})" if required else name
        setting = parse_one(preset.example or shown)
        where = {}
        for backend_name, backend in backends.items():
            problems = backend.check(backend.options(), setting, shape, host)
            where[backend_name] = {"runs": not problems, "reason": "; ".join(p.reason for p in problems)}
        presets.append({"kv": preset.name, "summary": preset.summary, "paper": preset.paper, "backends": where})
    return presets


def _models() -> list[dict[str, Any]]:
    from niah.kv.zoo import builtin_names
    from niah.models import EMBEDDED

    embedded = [{"name": m.alias, "summary": m.summary, "runs": True} for m in EMBEDDED.values()]
    shapes = [{"name": n, "summary": "shape only, for niah memory", "runs": False} for n in builtin_names()]
    return embedded + [s for s in shapes if s["name"] not in EMBEDDED]


def _runs(results: Path) -> list[dict[str, Any]]:
    from niah.errors import StoreError
    from niah.store.folder import list_runs

    found = []
    for folder in list_runs(results):
        try:
            manifest = folder.manifest()
        except StoreError as err:
            manifest = {"status": "unreadable", "command": str(err)}
        settings = manifest.get("settings")
        found.append(
            {
                "name": folder.path.name,
                "path": str(folder.path),
                "status": manifest.get("status"),
                "started_at": manifest.get("started_at"),
                "kv": list(settings) if isinstance(settings, dict) else [],
                "summary": str(manifest.get("command", "")),
            }
        )
    return found


def _print(what: str, entry: dict[str, Any]) -> None:
    if what == "kv":
        typer.echo(f"{entry['kv']:<12} {entry['summary']}")
        for backend, state in entry["backends"].items():
            typer.echo(f"{'':<12}   {backend:<13} {'runs' if state['runs'] else 'no: ' + state['reason']}")
        return
    if what == "runs":
        typer.echo(f"{entry['name']}  {entry['status']}  {','.join(entry['kv'])}")
        return
    typer.echo(f"{entry['name']:<16} {entry['summary']}")
    for name, default in entry.get("options", {}).items():
        typer.echo(f"{'':<16}   {name} = {default}")
