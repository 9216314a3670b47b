"""Past runs planned again from their folder, which is data: nothing that it names is run, asked or opened.

A folder may come from anybody. So its plugins are not loaded, its server is not asked, its haystack file is not read,
and of a model that it names only ``tokenizer.json`` is. What is missing for that is reported in a sentence. With
``--trust-run`` it is planned as ``niah run`` would.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from niah import registry
from niah.config import RunConfig, build_config, validate
from niah.engines.base import ModelInfo
from niah.errors import CellError, ConfigError, StoreError, boundary
from niah.grid import parse_depths
from niah.models.embedded import EMBEDDED, embedded_folder, header_folder
from niah.paths import as_path
from niah.prompts.haystack import HaystackPlugin
from niah.prompts.task import TaskOptions, TaskPlugin
from niah.prompts.tokens import Counter, FastTokenizer, Template, Tokenizer, WordTokenizer
from niah.runner.plan import Plan, backend_of, make_plan, plan_to_read
from niah.runner.prompt_builder import Group, case_seed
from niah.types import Case

# length, trial and depth of a cell
Place: TypeAlias = tuple[int, int, float]

# a longer context than any model's: what a stranger's folder may make this machine build
MOST_TOKENS = 16 * 2**20
_MOST_TOKENIZER_BYTES = 256 * 2**20
TRUST = "--trust-run does, where you know who made the folder."


@dataclass(frozen=True, slots=True)
class Rebuild:
    """What ``run.json`` keeps so that prompts can be made again without asking the backend.

    Attributes:
        template: with its text.
        prefill: ``assistant_prefill`` of the model.
        numerics: part of a cell's identity.
        counted_by: who counted prompts that were sent as text; empty where ids were sent.
        headroom: of that counter.
    """

    template: Template
    prefill: bool
    reference_kv: str | None
    numerics: dict[str, str]
    counted_by: str = ""
    headroom: float = 1.0

    @staticmethod
    def of(info: ModelInfo) -> Rebuild:
        counter = info.counter
        counted = ("", 1.0) if counter is None else (counter.name, counter.headroom)
        return Rebuild(info.template, info.assistant_prefill, info.reference_kv, dict(info.numerics), *counted)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def recorded_config(
    manifest: Mapping[str, Any], where: Path, *, trust: bool = False, with_settings: bool = True
) -> RunConfig:
    """What was asked, as ``run.json`` says it.

    Args:
        trust: load the plugin files that it names.
        with_settings: with its KV settings, whose names plugins may have brought.

    Raises:
        ConfigError: it does not say, or it names plugin files that were not given.
        StoreError: it says what cannot have been asked.
    """
    asked = manifest.get("asked")
    if not isinstance(asked, Mapping) or not isinstance(asked.get("config"), Mapping):
        raise ConfigError(f"the run.json of {str(where)!r} does not say what was asked; it cannot be rebuilt.")
    config = dict(asked["config"])
    if with_settings:
        _load_plugins(config.get("plugins"), trust=trust)
    else:
        config["kv"] = None
    try:
        return build_config(config)
    except ConfigError as err:
        raise StoreError(f"what the run.json of {str(where)!r} says was asked cannot be read: {err}") from err


def _load_plugins(named: Any, *, trust: bool) -> None:
    """Names of tasks and KV settings are looked up when a config is built, so plugins come first."""
    paths = [path for path in named if isinstance(path, str)] if isinstance(named, list) else []
    if trust:
        for path in paths:
            registry.add_file(Path(path))
    elif not all(registry.has_file(path) for path in paths):
        raise ConfigError(
            f"this run used plugin files, which a report does not load by itself: give them with --plugin. {TRUST}"
        )


def plan_again(
    manifest: Mapping[str, Any],
    where: Path,
    contexts: Collection[tuple[int, int]] | None = None,
    *,
    trust: bool = False,
) -> Plan:
    """The plan of a run, made again from its manifest.

    Args:
        contexts: lengths and trials that are wanted; None wants all.
        trust: do what the folder says: load its plugins, ask its server, open its text, run its model's code.

    Raises:
        ConfigError: the manifest does not say what was asked, the haystack came from standard input, or the prompts
            cannot be made again without doing what the folder says.
        NiahError: the model's tokenizer or the text is not there any more.
    """
    config = recorded_config(manifest, where, trust=trust)
    date = _part(manifest, "model").get("date")
    if isinstance(date, str):
        # what its template printed then, whatever is printed by now where nobody names a day
        config.backend.options.setdefault("date", date)
    if config.haystack.argument == "-":
        raise ConfigError("this run read its haystack from standard input, so its prompts cannot be built again.")
    if trust:
        return make_plan(config, try_building=False)  # its prompts were built once already
    _refuse_foreign_text(config)
    longest = max((length for length, _ in contexts), default=0) if contexts is not None else 0
    if longest > MOST_TOKENS:
        raise ConfigError(f"a context of {longest:,} tokens is longer than reading a run builds again. {TRUST}")
    return plan_to_read(config, _info(config, manifest), contexts)


def cases_alone(config: RunConfig, contexts: Collection[tuple[int, int]]) -> dict[Place, tuple[Group, Case]]:
    """Cases as the task makes them where no text is at hand: a name or value that a text held itself is not left out.

    Raises:
        ConfigError: no such task, option or depth.
    """
    task: TaskPlugin[Any] = registry.load("tasks", config.task.name)
    options: TaskOptions = validate(task.options, config.task.options, "task")
    found: dict[Place, tuple[Group, Case]] = {}
    for index, layout in enumerate(task.layouts(options, parse_depths(config.grid.depths))):
        for length, trial in sorted(contexts):
            group = Group(length, trial, index, layout)
            for case in task.make(options, case_seed(config, task.name, group), layout, lambda _: False):
                found[length, trial, case.depth] = (group, case)
    return found


def _refuse_foreign_text(config: RunConfig) -> None:
    name, argument = config.haystack.name, config.haystack.argument
    plugin: HaystackPlugin[Any] = registry.load("haystacks", name)
    if not plugin.is_made:
        source = f"{name}:{argument}" if argument else name
        raise ConfigError(
            f"this run's text came from {source!r}, and reading a run opens no file or data set that its folder names. "
            f"{TRUST}"
        )


def _info(config: RunConfig, manifest: Mapping[str, Any]) -> ModelInfo:
    """The model as far as prompts and ids need it: from the record, or from the backend where that asks nobody."""
    backend, options = backend_of(config)
    model = config.model or backend.default_model
    is_known = backend.is_known_here(options, model)
    record = manifest.get("rebuild")
    if record is None:
        if is_known:
            return backend.describe(options, model)
        raise ConfigError(
            "this run was made by an older niah, which kept no template: its prompts cannot be built again without "
            f"asking the backend {backend.name!r}. {TRUST}"
        )
    try:
        kept = TypeAdapter(Rebuild).validate_python(record)
    except ValidationError as err:
        first = err.errors(include_url=False, include_input=False)[0]
        path = ".".join(["rebuild", *(str(part) for part in first["loc"])])
        raise StoreError(f"run.json: {path} cannot be read: {first['msg']}. Restore it, or run again.") from err
    name, revision = (str(_part(manifest, "model").get(key) or "") for key in ("name", "revision"))
    digest = str(_part(manifest, "tokenizer").get("digest") or "")
    tokenizer = local_tokenizer(digest, model, revision, as_library=not kept.counted_by)
    if tokenizer is None:
        if is_known:
            return backend.describe(options, model)
        raise ConfigError(
            f"the tokenizer of {model!r} is not on this machine, so the prompts cannot be built again without asking "
            f"the backend {backend.name!r}. {TRUST}"
        )
    return ModelInfo(
        name=name,
        source=model,
        revision=revision,
        tokenizer=tokenizer,
        template=kept.template,
        reference_kv=kept.reference_kv,
        numerics=kept.numerics,
        counter=_counter(kept, tokenizer),
        assistant_prefill=kept.prefill,
    )


def _part(manifest: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = manifest.get(key)
    return part if isinstance(part, Mapping) else {}


def _counter(kept: Rebuild, tokenizer: Tokenizer) -> Counter | None:
    """The counter of prompts that are sent as text, where that was this machine itself."""
    from niah.engines.hosted.tokenizer import LocalCounter

    if not kept.counted_by:
        return None
    added = re.search(r" \+ (\d{1,9})\Z", kept.counted_by)
    counter = LocalCounter(tokenizer, int(added[1]) if added else 0, min(max(kept.headroom, 1.0), 8.0))
    if counter.name != kept.counted_by:
        raise ConfigError(
            f"the prompts of this run were counted by {kept.counted_by!r}, which reading a run does not ask: they "
            f"cannot be built again to the token. {TRUST}"
        )
    return counter


def local_tokenizer(digest: str, model: str, revision: str, *, as_library: bool) -> Tokenizer | None:
    """The tokenizer of a past run where this machine has it; None where it has not.

    Nothing is asked for it: it is one without a file, a vocabulary that a package brings along, or a
    ``tokenizer.json`` in the cache of models or in a local folder, which runs no code.

    Args:
        digest: of the run's tokenizer; a file with another one is taken too, as each prompt's own hash is compared.
        model, revision: as recorded.
        as_library: see ``FastTokenizer``: for prompts that were sent as ids.
    """
    from niah.engines.hosted.tokenizer import packaged_tokenizer

    if digest == WordTokenizer.digest:
        return WordTokenizer()
    packaged = packaged_tokenizer(digest)
    if packaged is not None:
        return packaged
    file = _tokenizer_file(model, revision)
    if file is None:
        return None
    try:
        with boundary("tokenizer", f"the tokenizer of the run, {str(file)!r}"):
            return FastTokenizer.from_file(file, model, as_library=as_library)
    except CellError as err:
        raise ConfigError(f"{err}.") from err


def _tokenizer_file(model: str, revision: str) -> Path | None:
    if model in EMBEDDED:
        places = [embedded_folder(model)]
    elif model.startswith(("//", "\\\\")):
        return None  # to open the path of a network share is to connect
    else:
        places = [_folder(model), header_folder(Path(model).stem, Path(revision).name)]
    for place in places:
        file = place / "tokenizer.json"
        try:
            if file.is_file() and file.stat().st_size <= _MOST_TOKENIZER_BYTES:
                return file
        except (OSError, ValueError):
            continue  # a model's name need not be fit for a path
    return _hub_cached(model, revision)


def _folder(model: str) -> Path:
    try:
        return as_path(model)
    except ConfigError:
        return Path(model)  # unfit for a path, as a hosted model's name may be


def _hub_cached(model: str, revision: str) -> Path | None:
    """The file in the hub's cache on this machine: looked up, never fetched."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", model):
        return None
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(model, "tokenizer.json", revision=revision or None)
    except ValueError:
        return None  # not a name that the hub has
    return Path(found) if isinstance(found, str) else None
