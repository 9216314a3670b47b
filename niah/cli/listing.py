"""``niah list``: what there is, and what runs where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from niah.cli.options import Json, Plugin
from niah.cli.say import say
from niah.redact import printable

_PLAIN_WIDTH = 160
WHAT = ("backends", "tasks", "haystacks", "scorers", "kv", "models", "runs")


def list_(
    what: Annotated[str, typer.Argument(help=" | ".join(WHAT))],
    name: Annotated[str, typer.Argument(help="Only this one, with all that is known of it.")] = "",
    results: Annotated[Path, typer.Option("--out", "-o", help="Folder of runs, for 'runs'.")] = Path("results"),
    model: Annotated[
        str, typer.Option("--model", help="For 'kv': the model that settings are checked for.")
    ] = "smollm2",
    plugin: Plugin = None,  # noqa: ARG001 (loaded by the option)
    as_json: Json = False,
) -> None:
    """Names with a line each; 'kv' asks every backend what it can run on this machine, and why not."""
    from niah.errors import ConfigError, near

    if what not in WHAT:
        raise ConfigError(f"nothing to list under {what!r}.{near(what, WHAT)}")
    document = _document(what, results, model)
    entries = next(iter(document.values()))
    if name:
        key = "kv" if what == "kv" else "name"
        entries[:] = [entry for entry in entries if entry[key] == name] or _unknown(what, name, model, results)
    if as_json:
        typer.echo(json.dumps(document))
    elif what == "kv" and not name:
        _print_presets(entries)
    else:
        for entry in entries:
            _print(what, entry)


def _unknown(what: str, name: str, model: str, results: Path) -> list[dict[str, Any]]:
    from niah.errors import ConfigError, near

    key = "kv" if what == "kv" else "name"
    names = [entry[key] for entry in next(iter(_document(what, results, model).values()))]
    raise ConfigError(f"nothing named {name!r} under {what!r}.{near(name, names)}")


def _print_presets(presets: list[dict[str, Any]]) -> None:
    """Presets against backends. A backend whose cache cannot be chosen at all has no column, but a line."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PLAIN_WIDTH)
    able = {
        backend: [preset["kv"] for preset in presets if preset["backends"][backend]["runs"]]
        for backend in presets[0]["backends"]
    }
    columns = [backend for backend, names in able.items() if set(names) - {"auto"}]
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("KV", no_wrap=True)
    for backend in columns:
        table.add_column(backend, justify="center")
    table.add_column("what it is")
    for preset in presets:
        marks = ["yes" if preset["backends"][backend]["runs"] else "-" for backend in columns]
        table.add_row(preset["kv"], *marks, preset["summary"])
    console.print(table)
    if rest := [backend for backend in able if backend not in columns]:
        console.print(
            f"{', '.join(rest)}: only auto, as an API's cache can be neither chosen nor seen.", soft_wrap=True
        )
    console.print("niah list kv NAME says why a backend does not run a setting on this machine.", soft_wrap=True)


def _document(what: str, results: Path, model: str) -> dict[str, list[dict[str, Any]]]:
    if what == "kv":
        return {"presets": _presets(model)}
    if what == "models":
        return {"models": _models()}
    if what == "runs":
        return {"runs": _runs(results)}
    plugins = _loaded("scoring" if what == "scorers" else what)
    return {what: [_entry(plugin, name) for name, plugin in plugins.items()]}


def _loaded(kind: str) -> dict[str, Any]:
    """All plugins of a kind; what an installed package brings and cannot be loaded is told."""
    from niah import registry

    plugins, faults = registry.load_all(kind)
    for fault in faults:
        say(f"niah: {fault}", err=True)
    return plugins


def _entry(plugin: Any, name: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "summary": plugin.summary}
    options = getattr(plugin, "options", None)
    if options is not None:
        fields = options.model_fields
        entry["options"] = {k: str(f.get_default(call_default_factory=True)) for k, f in fields.items()}
    return entry


def _presets(model: str) -> list[dict[str, Any]]:
    from niah.engines.checkpoint.shape_by_name import resolve_shape
    from niah.kv.grammar import parse_one
    from niah.runner.host import this_host

    shape, host = resolve_shape(model), this_host()
    backends = _loaded("backends")
    presets = []
    for name, preset in _loaded("kv").items():
        required = [k for k, default in (preset.parameters or {}).items() if default is None]
        shown = f"{name}({','.join(f'{k}=512' for k in required)})" if required else name
        setting = parse_one(preset.example or shown)
        where = {}
        for backend_name, backend in backends.items():
            problems = backend.problems(backend.options(), setting, shape, host)
            where[backend_name] = {"runs": not problems, "reason": "; ".join(p.reason for p in problems)}
        presets.append({"kv": preset.name, "summary": preset.summary, "paper": preset.paper, "backends": where})
    return presets


def _models() -> list[dict[str, Any]]:
    from niah.models.embedded import EMBEDDED
    from niah.models.known import builtin_names

    embedded = [{"name": m.alias, "summary": m.summary, "runs": True} for m in EMBEDDED.values()]
    shapes = [{"name": n, "summary": "shape only, for niah memory", "runs": False} for n in builtin_names()]
    return embedded + [s for s in shapes if s["name"] not in EMBEDDED]


def _runs(results: Path) -> list[dict[str, Any]]:
    from niah.errors import StoreError
    from niah.report.data.summary import summaries
    from niah.store.folder import list_runs
    from niah.store.read import RunRecord
    from niah.store.sound import check_manifest

    found = []
    for folder in list_runs(results):
        accuracy: dict[str, float | None] = {}
        try:
            record = RunRecord.load(folder.path)
            check_manifest(record.manifest, record.path)
            manifest = dict(record.manifest)
            accuracy = {summary.kv: summary.total.share for summary in summaries(record)}
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
                "accuracy": accuracy,
                "summary": str(manifest.get("command", "")),
            }
        )
    return found


def _print(what: str, entry: dict[str, Any]) -> None:
    if what == "kv":
        say(f"{entry['kv']:<12} {entry['summary']}")
        for backend, state in entry["backends"].items():
            say(f"{'':<12}   {backend:<13} {'runs' if state['runs'] else 'no: ' + state['reason']}")
        return
    if what == "runs":
        shares = {kv: entry["accuracy"].get(kv) for kv in entry["kv"]}
        found = ", ".join(kv if share is None else f"{kv} {share * 100:.1f} %" for kv, share in shares.items())
        say(printable(f"{entry['name']}  {entry['status']}  {found}"))
        return
    say(f"{entry['name']:<16} {entry['summary']}")
    for name, default in entry.get("options", {}).items():
        say(f"{'':<16}   {name} = {default}")
