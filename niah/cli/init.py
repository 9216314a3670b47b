"""``niah init``: a config file to begin with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from niah.cli.options import Plugin
from niah.cli.say import say


def init(
    file: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("niah.yaml"),
    backend: Annotated[str, typer.Option("--backend", "-b", help="See niah list backends.")] = "transformers",
    plugin: Plugin = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a config file that runs as it is, with what can be changed and what it means."""
    from niah.errors import ConfigError
    from niah.store.folder import write_atomic

    text = starting_config(backend, str(file), [str(path) for path in plugin or []])
    if file.exists() and not force:
        raise ConfigError(f"{str(file)!r} exists. Name another file, or write over it with --force.")
    if not file.parent.is_dir():
        raise ConfigError(f"there is no folder {str(file.parent)!r} for the config file. Make it first.")
    write_atomic(file, text.encode())
    say(str(file))


def starting_config(backend: str, file: str, plugins: Sequence[str] = ()) -> str:
    """YAML of a small run with a backend's defaults; every further option stands as a comment.

    Args:
        plugins: files that the run needs.

    Raises:
        ConfigError: no such backend.
    """
    from niah import registry
    from niah.config import DEFAULT_DEPTHS, DEFAULT_LENGTHS, RunConfig

    plugin: Any = registry.load("backends", backend)
    plain = RunConfig()
    options = [
        f"  # {name}: {_yaml(field.get_default(call_default_factory=True))}"
        for name, field in plugin.options.model_fields.items()
    ]
    kv = ", ".join(f'"{name}"' if "(" in name else name for name in plugin.default_kv)
    remarks = [
        *([(f"plugins: {_yaml(list(plugins))}", "Python files that are run")] if plugins else []),
        ("model: " + plugin.default_model, "alias, folder or hub id: niah list models"),
        (f"kv: [{kv}]", "niah list kv"),
        ("backend:", plugin.summary),
        (f"  name: {backend}", "niah list backends; its options with their defaults:"),
        *((option, "") for option in options),
        (f"task: {plain.task.name}", "niah list tasks"),
        (f"haystack: {plain.haystack.name}", "niah list haystacks; or a path, or hf:NAME"),
        ("grid:", ""),
        (f"  lengths: {DEFAULT_LENGTHS}", "4k..128k doubles"),
        (f"  depths: {DEFAULT_DEPTHS}", "so many, evenly; or 0,50,100 in percent"),
        (f"  trials: {plain.grid.trials}", "texts and needles a cell; auto spends them where a verdict is open"),
        (f"  seed: {plain.grid.seed}", ""),
        (f"reference: {_yaml(plain.reference)}", "add the model's own 16-bit cache, to compare with"),
        (f"reuse: {plain.reuse}", "process shared prefixes once; off, or verify"),
        (f"answer_budget: {plain.answer_budget}", "least tokens that an answer may take"),
        (f"out: {plain.out}", "folder of run folders"),
        ("# max_minutes: 60", "stop cleanly; also max_cost (US dollars) and max_tokens"),
        ("# price: {input_usd: 2.5, output_usd: 10}", "your own, per million tokens"),
    ]
    head = [
        f"# niah plan {file}: what it would do and cost, and why it cannot run",
        f"# niah run {file}: measure; the same command goes on where it was interrupted",
    ]
    lines = head + [f"{text:<28} # {remark}" if remark else text for text, remark in remarks]
    return "\n".join(lines) + "\n"


def _yaml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
