"""``run.json``: what was asked, what was in force, and how it went. Written after every change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from niah.config import parse_shard
from niah.errors import ConfigError
from niah.grid import format_lengths, off_depths
from niah.kv.identity import canonical
from niah.kv.memory.formula_text import formula_text
from niah.redact import redact
from niah.runner.budget import Spending
from niah.runner.canary import CanaryResult
from niah.runner.host import hardware, versions
from niah.runner.plan import Plan
from niah.runner.reread import Rebuild
from niah.store.folder import RunFolder
from niah.store.schema import Row

QUESTIONS_KEPT = 2_000


class Manifest:
    """The manifest of a run in progress; settings that were measured before keep what was recorded of them."""

    def __init__(self, plan: Plan, folder: RunFolder, command: str, version: str) -> None:
        self._plan = plan
        self._folder = folder
        old = folder.manifest() if folder.file("run.json").is_file() else {}
        self._data: dict[str, Any] = {**_static(plan, version), "command": redact(command)}
        self._data["started_at"] = old.get("started_at") or _now()
        earlier = old.get("settings", {})
        self._data["settings"] = {kv.name: _setting(plan, kv, earlier.get(kv.name, {})) for kv in plan.kvs}
        for key in ("reuse_check", "adaptive", "difficulty", "spent", "rescored", "merged_from"):
            if key in old:
                self._data[key] = old[key]

    def _save(self) -> None:
        self._folder.write_manifest(self._data)

    def start(self) -> None:
        self._data |= {"status": "running", "finished_at": None, "resumed_at": _now()}
        self._save()

    def finish(self, status: str, spending: Spending | None = None, why: str = "") -> None:
        self._data |= {"status": status, "finished_at": _now(), "stopped_by": why}
        if spending is not None:
            self.spent(spending)
        self._save()

    def spent(self, spending: Spending) -> None:
        """What the run has been billed so far; kept at once where no row would tell it after a kill."""
        self._data["spent"] = {
            "cost_usd": spending.usd if self._plan.prices is not None else None,
            "tokens": spending.tokens,
            "beside_usd": spending.beside_usd,
            "beside_tokens": spending.beside_tokens,
        }
        self._save()

    def spent_beside(self) -> tuple[float, int]:
        """US dollars and tokens that earlier parts of this run spent without a row."""
        spent = self._data.get("spent", {})
        return float(spent.get("beside_usd") or 0.0), int(spent.get("beside_tokens") or 0)

    def effective(self, kv: str, values: dict[str, Any]) -> None:
        """Settings read back from the engine after the setting has run."""
        self._data["settings"][kv]["effective"] = values
        self._save()

    def settled_canary(self, kv: str) -> bool:
        """Whether an earlier run of this folder settled it; a broken one is asked again."""
        canary: dict[str, Any] = self._data["settings"][kv].get("canary", {})
        return canary.get("state", "broken") in ("passed", "inconclusive")

    def canary(self, kv: str, result: CanaryResult) -> None:
        self._data["settings"][kv]["canary"] = result.to_json()
        self._data["settings"][kv]["broken"] = result.state == "broken"
        self._save()

    def reference_canary(self) -> CanaryResult | None:
        reference = self._plan.reference
        data = self._data["settings"].get(reference, {}).get("canary") if reference else None
        return CanaryResult.from_json(data) if data else None

    def placed(self, rows: Iterable[Row]) -> None:
        """Depths whose needles lie elsewhere, over all texts that were asked."""
        found = off_depths((r.length, r.depth, r.depth_real) for r in rows if r.depth_real is not None)
        self._data["depths_off"] = [item.to_json() for item in found]

    def broken(self) -> list[str]:
        return [kv for kv, setting in self._data["settings"].items() if setting.get("broken")]

    def adaptive(self, values: dict[str, Any]) -> None:
        """Rounds of ``--trials auto`` so far, and the cells that they have added."""
        self._data |= {"adaptive": values, "questions": _questions(self._plan), "plan": _planned(self._plan)}
        self._save()

    @property
    def difficulty(self) -> dict[str, Any] | None:
        """What ``--difficulty auto`` chose when this folder was first run."""
        return self._data.get("difficulty")

    def choose_difficulty(self, values: dict[str, Any]) -> None:
        """Keep what the probe found; what it was billed counts as spent by this run."""
        usd, tokens = values.get("cost_usd"), int(values["tokens"])
        self._data["difficulty"] = values
        self._data["spent"] = {"cost_usd": usd, "tokens": tokens, "beside_usd": usd or 0.0, "beside_tokens": tokens}
        self._save()

    def reuse_check(self, kv: str, values: dict[str, Any]) -> None:
        self._data.setdefault("reuse_check", {})[kv] = values
        self._save()


def _setting(plan: Plan, kv: Any, earlier: dict[str, Any]) -> dict[str, Any]:
    data = {"asked": canonical(kv), "effective": earlier.get("effective", {}), "broken": bool(earlier.get("broken"))}
    if earlier.get("canary"):
        data["canary"] = earlier["canary"]
    if plan.info.shape is not None:
        try:
            data["formula"] = formula_text(plan.info.shape, kv)
        except ConfigError:
            data["formula"] = ""  # a setting for which there is no formula is refused by check, or has none to show
    return data


def _static(plan: Plan, version: str) -> dict[str, Any]:
    info, builder = plan.info, plan.builder
    asked = plan.config.to_json() | {
        "kv": [kv.name for kv in plan.kvs],
        "backend_options": plan.options.model_dump(mode="json"),
        "task_options": builder.task_options.model_dump(mode="json"),
        "lengths": list(plan.lengths),
        "lengths_text": format_lengths(plan.lengths),
        "depths": list(plan.depths),
        "trials": plan.config.grid.trials,
        "seed": plan.config.grid.seed,
        "model": info.name,
    }
    asked |= {"backend": plan.backend.name, "task": builder.task.name, "haystack": plan.config.haystack.name}
    asked["config"] = plan.config.to_json()
    return {
        "schema": 1,
        "niah": version,
        "asked": asked,
        "reference": plan.reference,
        "shard": _shard(plan),
        "model": {
            "name": info.name,
            "revision": info.revision,
            "context_tokens": info.context_tokens,
            "shape": asdict(info.shape) if info.shape is not None else None,
            "template": info.template.name,
            "date": info.template.date or None,
        },
        "haystack": {"name": plan.config.haystack.name, "digest": builder.source.digest},
        "tokenizer": {
            "name": info.tokenizer.name,
            "digest": info.tokenizer.digest,
            "assembly": builder.segmented(0).mode,
        },
        "rebuild": Rebuild.of(info).to_json(),
        "prices": plan.prices.to_json() if plan.prices is not None else None,
        "hardware": hardware(),
        "versions": {"niah": version, **versions()},
        "questions": _questions(plan),
        "plan": _planned(plan),
        "depths_off": [item.to_json() for item in plan.depths_off],
    }


def _shard(plan: Plan) -> dict[str, Any] | None:
    """Which part of which run this is; ``whole`` is the hash at the end of that run's folder."""
    if plan.config.shard is None:
        return None
    index, count = parse_shard(plan.config.shard)
    return {"index": index, "count": count, "whole": plan.whole_identity()}


def _planned(plan: Plan) -> dict[str, int]:
    return {"cells": plan.cell_count, "tokens_unique": plan.tokens_unique, "tokens_naive": plan.tokens_naive}


def _questions(plan: Plan) -> dict[str, str]:
    """Question of each pair, for the report's drawer; left out of very large runs, where ``niah cell`` shows it."""
    if plan.cells_per_setting > QUESTIONS_KEPT:
        return {}
    most = max(plan.trials_of(kv.name) for kv in plan.kvs)
    return {
        cell.pair_id: cell.case.question
        for group in plan.groups
        if group.trial < most
        for cell in plan.cells(plan.kvs[0], group)
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
