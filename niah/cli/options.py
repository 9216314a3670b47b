"""Options that ``run`` and ``plan`` share, and how they become a ``RunConfig``: YAML < environment < flags < --set."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, TypeAlias, get_type_hints

import typer

from niah.cli.say import say
from niah.errors import ConfigError

if TYPE_CHECKING:
    from niah.config import RunConfig
    from niah.kv.config import KVConfig

_RUN = "What is measured"
_GRID = "Grid"

ConfigFile: TypeAlias = Annotated[Path | None, typer.Argument(help="YAML file; flags win over it.", metavar="CONFIG")]
Backend: TypeAlias = Annotated[
    str | None,
    typer.Option("--backend", "-b", envvar="NIAH_BACKEND", help="See niah list backends.", rich_help_panel=_RUN),
]
Model: TypeAlias = Annotated[
    str | None,
    typer.Option("--model", "-m", envvar="NIAH_MODEL", help="Alias, folder or hub id.", rich_help_panel=_RUN),
]
KV: TypeAlias = Annotated[
    str | None,
    typer.Option("--kv", envvar="NIAH_KV", help="KV settings: bf16,int8,'int4(group_size=64)'.", rich_help_panel=_RUN),
]
KVDtype: TypeAlias = Annotated[
    str | None,
    typer.Option("--kv-dtype", envvar="NIAH_KV_DTYPE", help="KV element types; added to --kv.", rich_help_panel=_RUN),
]
SlidingWindow: TypeAlias = Annotated[
    int | None,
    typer.Option("--sliding-window", min=1, help="Add window(N) to every setting of --kv.", rich_help_panel=_RUN),
]
ContextParallel: TypeAlias = Annotated[
    int | None,
    typer.Option("--context-parallel", min=1, help="Add ring(N) to every setting of --kv.", rich_help_panel=_RUN),
]
Task: TypeAlias = Annotated[
    str | None,
    typer.Option("--task", "-t", envvar="NIAH_TASK", help="multikey, single, passkey.", rich_help_panel=_RUN),
]
Haystack: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--haystack",
        envvar="NIAH_HAYSTACK",
        help="chronicle, noise, needles, a path (file, folder, glob, -), or hf:NAME, hf:NAME/CONFIG:SPLIT#COLUMN.",
        rich_help_panel=_RUN,
    ),
]
Lengths: TypeAlias = Annotated[
    str | None,
    typer.Option("--lengths", "-l", envvar="NIAH_LENGTHS", help="4k..128k or 512,1k,2k.", rich_help_panel=_GRID),
]
Depths: TypeAlias = Annotated[
    str | None,
    typer.Option("--depths", "-d", envvar="NIAH_DEPTHS", help="11, or 0,50,100 (percent).", rich_help_panel=_GRID),
]
Trials: TypeAlias = Annotated[
    str | None,
    typer.Option(
        *("--trials", "-n"),
        envvar="NIAH_TRIALS",
        help="Texts and needles per cell, or auto: until verdicts are settled.",
        rich_help_panel=_GRID,
    ),
]
Seed: TypeAlias = Annotated[int | None, typer.Option("--seed", envvar="NIAH_SEED", rich_help_panel=_GRID)]
Sets: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", "-s", metavar="A.B=C", help="Any setting, e.g. backend.threads=2.")
]
Reference: TypeAlias = Annotated[
    bool | None,
    typer.Option("--reference/--no-reference", help="Add the model's own 16-bit cache.", rich_help_panel=_RUN),
]
Reuse: TypeAlias = Annotated[
    str | None, typer.Option("--reuse", envvar="NIAH_REUSE", help="on, off or verify: process shared prefixes once.")
]
Out: TypeAlias = Annotated[
    str | None, typer.Option("--out", "-o", envvar="NIAH_OUT", help="Folder of run folders (default: results).")
]
Difficulty: TypeAlias = Annotated[
    str | None,
    typer.Option("--difficulty", help="auto: a probe chooses how hard the task is.", rich_help_panel=_RUN),
]
MaxMinutes: TypeAlias = Annotated[float | None, typer.Option("--max-minutes", help="Stop cleanly after this time.")]
MaxCost: TypeAlias = Annotated[
    float | None,
    typer.Option("--max-cost", envvar="NIAH_MAX_COST", help="Stop before the run has cost this, in US dollars."),
]
MaxTokens: TypeAlias = Annotated[
    int | None,
    typer.Option("--max-tokens", envvar="NIAH_MAX_TOKENS", help="Stop before the run has taken this many tokens."),
]
Batch: TypeAlias = Annotated[
    bool | None,
    typer.Option("--batch/--no-batch", help="Submit cells as batches: slower, at about half the price."),
]
Shard: TypeAlias = Annotated[
    str | None,
    typer.Option("--shard", metavar="I/N", help="Only this part of the grid; see niah merge.", rich_help_panel=_GRID),
]
Cache: TypeAlias = Annotated[
    str | None, typer.Option("--cache", metavar="[DIR]", help="Keep answers, and use those kept before.")
]


def _load_plugins(context: typer.Context, files: list[Path] | None) -> list[Path] | None:
    """Load what the user names before the command looks a name up; nothing is run to complete a line in a shell."""
    if not context.resilient_parsing:
        from niah import registry

        for file in files or []:
            registry.add_file(file)
    return files


Plugin: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE",
        callback=_load_plugins,
        help="Python file with further settings, tasks, haystacks, scorers or backends; may be given several times.",
    ),
]
TrustRun: TypeAlias = Annotated[
    bool,
    typer.Option("--trust-run", help="Do what the run folder says: load its plugins, ask its server, open its text."),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON document on the last line of stdout.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFlags:
    """What ``run`` and ``plan`` both take; None where it was not given."""

    config: ConfigFile = None
    backend: Backend = None
    model: Model = None
    kv: KV = None
    kv_dtype: KVDtype = None
    sliding_window: SlidingWindow = None
    context_parallel: ContextParallel = None
    task: Task = None
    haystack: Haystack = None
    lengths: Lengths = None
    depths: Depths = None
    trials: Trials = None
    seed: Seed = None
    difficulty: Difficulty = None
    sets: Sets = None
    reference: Reference = None
    reuse: Reuse = None
    out: Out = None
    max_minutes: MaxMinutes = None
    max_cost: MaxCost = None
    max_tokens: MaxTokens = None
    batch: Batch = None
    shard: Shard = None
    cache: Cache = None
    plugin: Plugin = None


def with_run_flags(command: Callable[Concatenate[RunFlags, ...], None]) -> Callable[..., None]:
    """The command with each field of ``RunFlags`` as an option; it is called with one value that holds them all."""

    @wraps(command)
    def called(**given: Any) -> None:
        flags = RunFlags(**{name: given.pop(name) for name in shared})
        command(flags, **given)

    hints = get_type_hints(RunFlags, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = {name: inspect.Parameter(name, keyword, default=None, annotation=hint) for name, hint in hints.items()}
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    signature = inspect.Signature([*shared.values(), *(parameter.replace(kind=keyword) for parameter in own)])
    called.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    vars(called)["__signature__"] = signature
    return called


# options that are top-level keys of the config
_PLAIN = (
    *("model", "reference", "reuse", "out", "difficulty", "batch", "shard"),
    *("max_minutes", "max_cost", "max_tokens", "cache"),
)


def config_from(flags: RunFlags) -> RunConfig:
    """Merge the YAML file, flags (with their environment variables) and ``--set``, and validate.

    Raises:
        ConfigError: whatever is wrong, as one sentence.
    """
    from niah import registry
    from niah.config import apply_sets, build_config, load_yaml, merge

    _warn_unknown_variables()
    base = load_yaml(flags.config) if flags.config is not None else {}
    named = [Path(path) for path in base.get("plugins", [])]
    if named:
        listed = ", ".join(str(path) for path in named)
        say(f"niah: {flags.config} names plugin files, which are run now: {listed}", err=True)
    own = [str(path) for path in flags.plugin or []]
    asked = apply_sets({}, [item for item in flags.sets or [] if item.partition("=")[0].strip() == "plugins"])
    # names are looked up while the rest is read, so plugins come first
    for path in [*named, *map(Path, asked.get("plugins", []))]:
        registry.add_file(path)
    layer = _layer(flags) | ({"plugins": [*base.get("plugins", []), *own]} if own else {})
    return build_config(apply_sets(merge(base, layer), flags.sets or []))


def _layer(flags: RunFlags) -> dict[str, Any]:
    from niah.config import named_from_text

    given = {name: value for name, value in asdict(flags).items() if value is not None}
    layer = {name: given[name] for name in _PLAIN if name in given}
    layer |= {name: named_from_text(name, given[name]) for name in ("backend", "task", "haystack") if name in given}
    grid = {name: given[name] for name in ("lengths", "depths", "trials", "seed") if name in given}
    if grid:
        layer["grid"] = grid
    if settings := _settings(flags):
        layer["kv"] = settings
    return layer


def _settings(flags: RunFlags) -> list[KVConfig]:
    """``--kv`` and ``--kv-dtype``, each with a window and ranks where those are asked, or these alone."""
    from niah.config import split_list
    from niah.kv.grammar import parse_kv, part

    names = [name for text in (flags.kv, flags.kv_dtype) for name in split_list(text or "")]
    if not names and (flags.kv is not None or flags.kv_dtype is not None):
        raise ConfigError("--kv is empty; name a setting such as bf16,int8.")
    window, ranks = flags.sliding_window, flags.context_parallel
    also = [part("window", size=window)] if window else []
    also += [part("ring", ranks=ranks)] if ranks and ranks > 1 else []
    return parse_kv(names, also=also)


_VARIABLES = ("BACKEND", "MODEL", "KV", "KV_DTYPE", "TASK", "HAYSTACK", "LENGTHS", "DEPTHS", "TRIALS", "SEED")
_OTHER_VARIABLES = ("REUSE", "OUT", "CACHE", "VIEW_TOKEN", "MAX_COST", "MAX_TOKENS")


def _warn_unknown_variables() -> None:
    known = {f"NIAH_{name}" for name in (*_VARIABLES, *_OTHER_VARIABLES)}
    for name in sorted(os.environ):
        if name.startswith("NIAH_") and name not in known:
            say(f"niah: the environment variable {name} is not one that niah reads.", err=True)


def with_defaults(arguments: list[str]) -> list[str]:
    """The arguments with a value for ``--cache`` where none follows: the library has no optional values."""
    out = []
    for argument, following in zip(arguments, [*arguments[1:], "-"], strict=True):
        out.append(argument)
        if argument == "--cache" and following.startswith("-"):
            out.append("default")
    return out


def command_line(*, resuming: bool = False) -> str:
    """What the user typed, ready to be pasted again.

    Args:
        resuming: without ``--fresh``, which would begin anew.
    """
    return shlex.join(["niah", *(arg for arg in sys.argv[1:] if not (resuming and arg == "--fresh"))])
