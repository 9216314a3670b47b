"""The plan of a run: settings, cells and their ids, tokens, memory, and every reason why it cannot run."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from niah import registry
from niah.config import RunConfig, parse_shard, validate
from niah.engines.base import BackendOptions, BackendPlugin, ModelInfo
from niah.errors import ConfigError, MissingDependency, MissingKey
from niah.grid import OffDepth, identity, off_depths, parse_depths, parse_lengths
from niah.kv.config import KVConfig
from niah.kv.grammar import parse_kv, reference_for, resolved
from niah.kv.identity import canonical
from niah.kv.limits import prompt_problems
from niah.kv.memory.totals import fits, kv_bytes, stored_tokens, weights_bytes
from niah.models.shape import ModelShape
from niah.runner.cells import PlannedCell
from niah.runner.host import this_host
from niah.runner.prices import Prices, find_prices, why_unpriced
from niah.runner.prompt_builder import BUILDER_VERSION, PLACING_VERSION, Group, PromptBuilder
from niah.types import ROW_SCHEMA, Case, Problem, Prompt

# what --trials auto begins with: enough contexts for a first verdict even at a single length
FIRST_TRIALS = 6


@dataclass
class Plan:
    """A run that has been thought through but not started.

    Attributes:
        kvs: settings in the order in which they run, the reference first.
        reference: name of the reference setting, or None.
        groups: contexts in the order in which they are asked; with ``--trials auto`` all that may be asked.
        limits: trials that a setting has been granted so far, where that is not all.
        problems: why it cannot run; empty when it can.
        prices: what its tokens cost; None where nobody bills them or no price is known.
        sketched: why the service was not asked, so that counts are estimates; empty where it was.
        depths_off: depths whose needles lie elsewhere in the first text; empty where no prompt was built.
    """

    config: RunConfig
    backend: BackendPlugin[Any]
    options: BackendOptions
    info: ModelInfo
    builder: PromptBuilder
    kvs: tuple[KVConfig, ...]
    reference: str | None
    lengths: tuple[int, ...]
    depths: tuple[float, ...]
    groups: tuple[Group, ...]
    problems: list[Problem] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)
    prices: Prices | None = None
    depths_off: tuple[OffDepth, ...] = ()
    sketched: str = ""
    _cells: dict[tuple[str, Group], tuple[PlannedCell, ...]] = field(default_factory=dict, repr=False)

    @property
    def cell_count(self) -> int:
        return sum(len(group.layout.asked) for kv in self.kvs for group in self.groups_of(kv.name))

    @property
    def first_trials(self) -> int:
        """Trials that every setting gets."""
        grid = self.config.grid
        return min(FIRST_TRIALS, grid.trials) if grid.auto_trials else grid.trials

    def trials_of(self, kv: str) -> int:
        """Trials that a setting has been granted."""
        return self.limits.get(kv, self.first_trials)

    def groups_of(self, kv: str) -> list[Group]:
        """Contexts that a setting is asked."""
        return [group for group in self.groups if group.trial < self.trials_of(kv)]

    @property
    def cells_per_setting(self) -> int:
        """Cells of a setting that has been granted the most trials."""
        return len(self.lengths) * len(self.depths) * max(self.trials_of(kv.name) for kv in self.kvs)

    @property
    def tokens_naive(self) -> int:
        """Prompt tokens when every cell is processed from its first token: at most, answers included."""
        return sum(g.length * len(g.layout.asked) for kv in self.kvs for g in self.groups_of(kv.name))

    @property
    def tokens_unique(self) -> int:
        """Prompt tokens when every context is processed once."""
        return sum(group.length for kv in self.kvs for group in self.groups_of(kv.name))

    def cells(self, kv: KVConfig, group: Group) -> tuple[PlannedCell, ...]:
        """A group's cells under one setting, in the order of its prompts; their ids are hashed once."""
        key = kv.name, group
        if key not in self._cells:
            cases = enumerate(self.builder.cases(group))
            self._cells[key] = tuple(self._cell(kv, group, position, case) for position, case in cases)
        return self._cells[key]

    def _cell(self, kv: KVConfig, group: Group, position: int, case: Case) -> PlannedCell:
        pair = {
            **self._text_identity(case),
            "length": group.length,
            "depth": case.depth,
            "layout": [list(group.layout.asked), list(group.layout.hidden), group.index],
            "trial": group.trial,
            **self._placing(is_coarse=self.builder.is_coarse(group.length, group.trial)),
        }
        cell = {**pair, **self._engine_identity(), "kv": canonical(kv)}
        return PlannedCell(kv, group, position, case, identity(cell), identity(pair))

    def answer_id(self, kv: KVConfig, prompt: Prompt) -> str:
        """Hash of all that decides an answer, without what only judges it: the key of the answer cache."""
        builder, case = self.builder, prompt.case
        decides = {
            "prompt": prompt.sha256,
            "answer_budget": prompt.answer_budget,
            # decoding stops when the task has what it asked for
            "task": [builder.task.name, builder.task.version, registry.digest("tasks", builder.task.name)],
            "expected": list(case.expected),
            "gold": list(prompt.gold),
            **self._engine_identity(),
            "kv": canonical(kv),
        }
        return identity(decides)

    def _placing(self, *, is_coarse: bool) -> dict[str, int]:
        """What decides where needles go in texts of long sentences; nothing for others, which keep their ids."""
        return {"placing": PLACING_VERSION} if is_coarse else {}

    def _text_identity(self, case: Case) -> dict[str, Any]:
        """What decides the prompts of a run and their judgement."""
        builder, config = self.builder, self.config
        scorer = registry.load("scoring", case.scorer)
        return {
            "schema": ROW_SCHEMA,
            "builder": BUILDER_VERSION,
            "task": [builder.task.name, builder.task.version, builder.task_options.model_dump(mode="json")],
            "scorer": [case.scorer, scorer.version],
            "haystack": [config.haystack.name, builder.source.digest],
            "tokenizer": self.info.tokenizer.digest,
            "template": self.info.template.digest,
            "answer_budget": config.answer_budget,
            "seed": config.grid.seed,
            "plugin_files": [
                registry.digest("tasks", config.task.name),
                registry.digest("haystacks", config.haystack.name),
                registry.digest("scoring", case.scorer),
            ],
        }

    def _engine_identity(self) -> dict[str, Any]:
        """What decides the answers besides the prompt and the KV setting."""
        backend = self.backend
        return {
            "backend": [
                backend.name,
                backend.version,
                self.options.identity(),
                registry.digest("backends", backend.name),
            ],
            "model": [self.info.name, self.info.revision, self.info.numerics],
            "reuse": self.config.reuse != "off",
            **_cache_files(),
        }

    def run_identity(self) -> str:
        """Hash of what was asked, model and text included, without where it is written or how long it may take."""
        return self._identity_of(self.config.shard)

    def whole_identity(self) -> str:
        """The identity of the run that this one is a shard of; its own where it is none."""
        return self._identity_of(None)

    def _identity_of(self, shard: str | None) -> str:
        asked = {
            **self._text_identity(self.builder.cases(self.groups[0])[0]),
            **self._engine_identity(),
            # by the first text, which every shard has
            **self._placing(is_coarse=any(self.builder.is_coarse(length, 0) for length in self.lengths)),
            "kv": sorted((canonical(kv) for kv in self.kvs), key=lambda kv: str(kv["name"])),
            "reference": self.reference,
            "lengths": list(self.lengths),
            "depths": list(self.depths),
            "trials": f"auto:{self.config.grid.trials}" if self.config.grid.auto_trials else self.config.grid.trials,
        }
        if self.config.difficulty:
            asked["difficulty"] = self.config.difficulty
        if shard:
            asked["shard"] = shard
        return identity(asked)[:10]

    def to_json(
        self, detectable_drop: float | None, gpu_bytes: int | None = None, money: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The document of ``niah plan --json``; the smallest visible drop comes from the statistics."""
        return {
            "cells": self.cell_count,
            "prompts": self.cell_count,
            "contexts": len(self.kvs) * len(self.groups),
            "tokens_naive": self.tokens_naive,
            "tokens_unique": self.tokens_unique,
            "cost_usd": None if money is None else money["cost_usd"],
            "money": money,
            "minutes": None,
            "kv_memory": self._memory(gpu_bytes),
            "detectable_drop": detectable_drop,
            "depths_off": [item.to_json() for item in self.depths_off],
            "sketched": self.sketched,
            "problems": [
                {"field": p.field, "value": p.value, "reason": p.reason, "suggestion": p.suggestion}
                for p in self.problems
            ],
        }

    def _memory(self, gpu_bytes: int | None) -> list[dict[str, Any]]:
        shape = self.info.shape
        rows: list[dict[str, Any]] = []
        for kv in self.kvs:
            for length in self.lengths:
                size = None
                if shape is not None and not any(p.field == "kv" and p.value == kv.name for p in self.problems):
                    size = _size(shape, kv, length)
                room = None if shape is None or size is None else fits(weights_bytes(shape), size, gpu_bytes)
                rows.append({"kv": kv.name, "length": length, "logical_bytes": size, "fits": room})
        return rows


def _cache_files() -> dict[str, Any]:
    """Digests of files that bring ways to keep a cache; nothing where there are none."""
    found = {kind: registry.digests(kind) for kind in ("formats", "methods")}
    return {"cache_files": found} if any(found.values()) else {}


def _size(shape: ModelShape, kv: KVConfig, length: int) -> int | None:
    """Bytes of a cell's cache; None where an engine takes a setting for which there is no formula."""
    try:
        return kv_bytes(shape, kv, stored_tokens(length, 0))
    except ConfigError:
        return None


def make_plan(config: RunConfig, *, try_building: bool = True, may_sketch: bool = False) -> Plan:
    """Think a run through: load plugins, describe the model, check every setting, and build one prompt per length.

    Args:
        try_building: whether to build those prompts; a run that has been made was built once already.
        may_sketch: plan without asking the service where there is no key for it, with estimated counts.

    Raises:
        ConfigError: a name, option or grid that is wrong in itself. What is right in itself but cannot run here is in
            ``problems`` instead, all of it at once.
        MissingDependency: a package that the backend needs is not installed.
    """
    lengths, depths = parse_lengths(config.grid.lengths), parse_depths(config.grid.depths)
    backend, options = backend_of(config)
    _require(backend)
    asked = _asked_settings(config, backend)
    info, sketched = _described(backend, options, config.model or backend.default_model, may_sketch=may_sketch)
    kvs, reference = _settings(config, asked, info)
    problems = [p for kv in kvs for p in backend.problems(options, kv, info.shape, this_host())]
    problems += _too_long(info, lengths)
    prices = find_prices(config, info)
    if config.max_cost is not None and prices is None:
        hint = "Give one: --set price.input_usd=…, --set price.output_usd=… (per million tokens), or use --max-tokens."
        problems.append(Problem("max_cost", f"{config.max_cost:g}", why_unpriced(info), hint))
    problems += _no_batch(config, backend)
    builder = PromptBuilder(config, info, max(lengths))
    groups = tuple(_groups(builder, lengths, depths, config.grid.trials))
    if config.shard is not None:
        problems += _no_shard(config, groups)
        groups = _shard_of(config.shard, groups) or groups
    plan = Plan(
        config, backend, options, info, builder, kvs, reference, lengths, depths, groups, problems, prices=prices
    )
    plan.sketched = sketched
    if not problems and try_building:
        _try_building(plan)
    return plan


def _described(
    backend: BackendPlugin[Any], options: BackendOptions, model: str, *, may_sketch: bool
) -> tuple[ModelInfo, str]:
    """The model, and why it could only be sketched."""
    try:
        return backend.describe(options, model), ""
    except MissingKey as err:
        if not may_sketch or backend.sketch is None:
            raise
        return backend.sketch(options, model), str(err).partition(". ")[0]


def backend_of(config: RunConfig) -> tuple[BackendPlugin[Any], BackendOptions]:
    """The backend that a config names, and its options.

    Raises:
        ConfigError: no such backend, or no such option.
    """
    backend: BackendPlugin[Any] = registry.load("backends", config.backend.name)
    return backend, validate(backend.options, config.backend.options, "backend")


def plan_to_read(config: RunConfig, info: ModelInfo, contexts: Collection[tuple[int, int]] | None) -> Plan:
    """A plan from which prompts and ids of a past run are made again: nothing is described, checked or priced.

    Args:
        contexts: lengths and trials that are wanted; None wants all.

    Raises:
        ConfigError: a name, option or grid that is wrong in itself, or no wanted context in that grid.
    """
    backend, options = backend_of(config)
    kvs, reference = _settings(config, _asked_settings(config, backend), info)
    depths, trials = parse_depths(config.grid.depths), config.grid.trials
    lengths = parse_lengths(config.grid.lengths)
    if contexts is not None:
        wanted = {(length, trial) for length, trial in contexts if length in lengths and 0 <= trial < trials}
        lengths = tuple(sorted({length for length, _ in wanted}))
        if not lengths:
            raise ConfigError("none of the asked cells is in the grid that run.json describes.")
    builder = PromptBuilder(config, info, max(lengths))
    groups = _groups(builder, lengths, depths, trials, None if contexts is None else wanted)
    return Plan(config, backend, options, info, builder, kvs, reference, lengths, depths, tuple(groups))


def _asked_settings(config: RunConfig, backend: BackendPlugin[Any]) -> Sequence[KVConfig]:
    asked = config.kv if config.kv is not None else parse_kv(list(backend.default_kv))
    if not asked:
        raise ConfigError("kv is empty; name a setting such as bf16,int8.")
    return asked


def _require(backend: BackendPlugin[Any]) -> None:
    for package, extra in backend.requires:
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            found = None  # the package around it is missing too
        if found is None:
            raise MissingDependency(package, extra, f"the backend {backend.name!r}")


def _settings(config: RunConfig, asked: Sequence[KVConfig], info: ModelInfo) -> tuple[tuple[KVConfig, ...], str | None]:
    """Settings with the reference first, each once."""
    found = {kv.name: kv for kv in (resolved(one, info.reference_kv) for one in asked)}
    if not config.reference or info.reference_kv is None:
        return tuple(found.values()), None
    reference = reference_for(info.reference_kv)
    return (reference, *(kv for kv in found.values() if kv.name != reference.name)), reference.name


def _too_long(info: ModelInfo, lengths: Iterable[int]) -> list[Problem]:
    limit = info.context_tokens
    if limit is None:
        return []
    return [
        Problem(
            "lengths",
            str(length),
            f"the model {info.name!r} takes at most {limit:,} tokens, and this cell has {length:,}",
            f"Use lengths up to {limit}.",
        )
        for length in lengths
        if length > limit
    ]


def _no_batch(config: RunConfig, backend: BackendPlugin[Any]) -> Iterable[Problem]:
    """Why cells cannot be submitted as batches."""
    if not config.batch:
        return
    if not backend.has_batches:
        able = [name for name, its in registry.load_all("backends")[0].items() if its.has_batches]
        hint = f"Leave out --batch, or use --backend {' or '.join(able)}."
        yield Problem("batch", "true", f"the backend {backend.name!r} has no batches", hint)
    if config.reuse == "verify":
        yield Problem("reuse", "verify", "requests of a batch share nothing that could be verified", "Leave it out.")


def _groups(
    builder: PromptBuilder,
    lengths: Sequence[int],
    depths: tuple[float, ...],
    trials: int,
    wanted: Collection[tuple[int, int]] | None = None,
) -> Iterable[Group]:
    """Short contexts first, so that results appear early; a trial's contexts deepest needle first.

    With one needle a context, everything before the needle is shared: from the deepest on, each next context keeps
    the part of the cache before its needle.
    """
    layouts = list(enumerate(builder.layouts(depths)))
    layouts.sort(key=lambda item: -max(item[1].asked))
    contexts = product(lengths, range(trials)) if wanted is None else sorted(wanted)
    for length, trial in contexts:
        for index, layout in layouts:
            yield Group(length, trial, index, layout)


def _contexts(groups: Sequence[Group]) -> list[tuple[int, int]]:
    """What shards are made of: the groups of a context stay together, since they share a processed prefix."""
    return list(dict.fromkeys((group.length, group.trial) for group in groups))


def _shard_of(shard: str, groups: Sequence[Group]) -> tuple[Group, ...]:
    """Every N-th context from the I-th on, so that each shard has short and long ones."""
    index, count = parse_shard(shard)
    own = set(_contexts(groups)[index - 1 :: count])
    return tuple(group for group in groups if (group.length, group.trial) in own)


def _no_shard(config: RunConfig, groups: Sequence[Group]) -> Iterable[Problem]:
    """Why a run cannot be done in shards."""
    shard, contexts = str(config.shard), len(_contexts(groups))
    _, count = parse_shard(shard)
    if count > contexts:
        reason = f"the grid has {contexts} contexts (lengths × trials), so some of {count} shards would be empty"
        yield Problem("shard", shard, reason, f"Use at most {contexts}.")
    for what, is_asked in (("trials auto", config.grid.auto_trials), ("difficulty auto", config.difficulty)):
        if is_asked:
            yield Problem("shard", shard, f"{what} looks at all cells, and a shard has only its own", "Give a number.")


def _try_building(plan: Plan) -> None:
    """Make all cases, and the first trial's prompts of every length: what cannot be built is refused now."""
    contexts: list[int] = []
    questions: list[int] = []
    places: list[tuple[int, float, float]] = []
    # of a shard, the first trial of a length may be another than 0
    first = {group.length: group.trial for group in reversed(plan.groups)}
    for group in (group for group in plan.groups if group.trial < plan.first_trials):
        try:
            if group.trial != first[group.length]:
                plan.builder.cases(group)
                continue
            prompts = plan.builder.prompts(group)
        except ConfigError as err:
            plan.problems.append(Problem("lengths", str(group.length), str(err).rstrip(".")))
            return
        places += [(group.length, prompt.case.depth, prompt.depth_real) for prompt in prompts]
        contexts.append(min(len(prompt.context) for prompt in prompts))
        questions.append(max(len(prompt.tail) + prompt.answer_budget for prompt in prompts))
    plan.depths_off = off_depths(places)
    context, question = min(contexts, default=0), max(questions, default=0)
    for kv in plan.kvs:
        plan.problems += prompt_problems(kv, context, question)
