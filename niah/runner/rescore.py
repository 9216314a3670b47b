"""Stored answers judged again, by a newer version of their scorer or by another one; nothing is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from niah import registry
from niah.errors import ConfigError, boundary
from niah.runner.plan import Plan
from niah.runner.workshop import Group
from niah.store.folder import RunFolder
from niah.store.rewrite import rewrite_rows
from niah.store.schema import Row
from niah.types import Case, Score


@dataclass(frozen=True, slots=True)
class Rescored:
    """What a look at stored answers changed.

    Attributes:
        judged: answered rows that were judged again; ``turned`` of them are now right or wrong where they were not.
        before: how many had been judged by which scorer and version.
    """

    scorer: str
    judged: int
    turned: int
    before: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return {"at": at, "scorer": self.scorer, "judged": self.judged, "turned": self.turned, "before": self.before}


class _Judge:
    """Finds each row's case in the plan that the run was made from, and judges its answer."""

    def __init__(self, plan: Plan, scorer: str | None) -> None:
        self._plan = plan
        self._scorer = scorer
        self._places: dict[tuple[int, int, float], tuple[Group, Case]] = {}
        for group in plan.groups:
            for case in plan.workshop.cases(group):
                self._places[group.length, group.trial, case.depth] = (group, case)
        self._kvs = {kv.name: kv for kv in plan.kvs}
        self.before: Counter[str] = Counter()
        self.names: set[str] = set()
        self.pairs: dict[str, str] = {}
        self.turned = 0

    def __call__(self, row: Row) -> Row:
        place = self._places.get((row.length, row.trial, row.depth))
        if place is None or place[1].expected != row.expected:
            raise ConfigError(
                f"the cell {row.cell_id} is not in the grid that run.json describes, or this version of niah makes "
                "another case of it: its answer cannot be judged again. Run the command anew."
            )
        group, case = place
        row = self._own_ids(row, group, case)
        if row.outcome != "answered":
            return row
        name = self._scorer or case.scorer
        with boundary("scorer", f"the scorer {name!r}"):
            score: Score = registry.load("scoring", name).score(row.answer, case)
        self.before[row.scorer] += 1
        self.names.add(f"{score.scorer}/{score.version}")
        self.turned += score.correct != row.correct
        return replace(
            row,
            correct=score.correct,
            score=score.value,
            why=score.why,
            scorer=f"{score.scorer}/{score.version}",
        )

    def _own_ids(self, row: Row, group: Group, case: Case) -> Row:
        """Ids hold the scorer's version: rows judged by today's are the rows that today's run would write.

        Another scorer than the task's own leaves them, as the run's command goes on to ask for the task's.
        """
        kv = self._kvs.get(row.kv)
        if kv is None or self._scorer not in (None, case.scorer):
            return row
        ids = self._plan.ids(kv, group, case)
        self.pairs[row.pair_id] = ids.pair
        return replace(row, cell_id=ids.cell, pair_id=ids.pair)


def rescore(plan: Plan, folder: RunFolder, scorer: str | None) -> Rescored:
    """Judge all answered rows of a run again, in place.

    Args:
        plan: made from the config in the run's manifest.
        scorer: None is each case's own.

    Raises:
        ConfigError: no such scorer, or a row that the plan does not know; nothing is changed then.
        CellError: the scorer itself fails; nothing is changed then either.
        StoreError: the rows cannot be written.
    """
    if scorer is not None:
        registry.load("scoring", scorer)
    judge = _Judge(plan, scorer)
    with folder:
        rewrite_rows(folder, judge)
        found = Rescored(
            ", ".join(sorted(judge.names)) or str(scorer), judge.before.total(), judge.turned, dict(judge.before)
        )
        _record(folder, found, judge.pairs)
    return found


def _record(folder: RunFolder, found: Rescored, pairs: Mapping[str, str]) -> None:
    manifest = folder.manifest()
    questions = manifest.get("questions")
    if isinstance(questions, dict):
        manifest["questions"] = {pairs.get(pair, pair): text for pair, text in questions.items()}
    manifest["rescored"] = [*(manifest.get("rescored") or []), found.to_json()]
    folder.write_manifest(manifest)
