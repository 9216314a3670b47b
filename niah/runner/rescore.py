"""Rescoring: stored answers judged again, by a newer version of their scorer or by another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from niah import registry
from niah.errors import BackendUnavailable, ConfigError, MissingDependency, boundary
from niah.runner.plan import Plan
from niah.runner.prompt_builder import Group, unprompted
from niah.runner.reread import Place, cases_alone, plan_again, recorded_config
from niah.store.folder import RunFolder
from niah.store.read import RunRecord
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
    """Finds each row's case, and judges its answer."""

    def __init__(self, cases: Mapping[Place, tuple[Group, Case]], plan: Plan | None, scorer: str | None) -> None:
        self._cases = cases
        self._plan = plan
        self._scorer = scorer
        self._kvs = {kv.name: kv for kv in plan.kvs} if plan is not None else {}
        self.before: Counter[str] = Counter()
        self.names: set[str] = set()
        self.pairs: dict[str, str] = {}
        self.turned = 0

    def __call__(self, row: Row) -> Row:
        place = self._cases.get((row.length, row.trial, row.depth))
        if place is None or place[1].expected != row.expected:
            raise ConfigError(
                f"the cell {row.cell_id} is not in the grid that run.json describes, or this version of niah makes "
                "another case of it: its answer cannot be judged again. Run the command anew."
            )
        group, case = place
        if self._plan is not None:
            row = self._own_ids(self._plan, row, group, case)
        elif not row.answer_prefix:
            case = unprompted(case)
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

    def _own_ids(self, plan: Plan, row: Row, group: Group, case: Case) -> Row:
        """Ids hold the scorer's version: rows judged by today's are the rows that today's run would write.

        Another scorer than the task's own leaves them, as the run's command goes on to ask for the task's.
        """
        kv = self._kvs.get(row.kv)
        if kv is None or self._scorer not in (None, case.scorer):
            return row
        cell = next(cell for cell in plan.cells(kv, group) if cell.case == case)
        self.pairs[row.pair_id] = cell.pair_id
        if cell.pair_id == row.pair_id:
            return row  # another cell id would be another machine's, which did not give this answer
        return replace(row, cell_id=cell.cell_id, pair_id=cell.pair_id)


def rescore(
    record: RunRecord, scorer: str | None, *, trust: bool = False, note: Callable[[str], None] = lambda _: None
) -> Rescored:
    """Judge all answered rows of a run again, in place.

    The cases come from the plan made again. Where that cannot be made from what the folder holds (see
    ``niah.runner.reread``), they are made by the task alone, which draws the same ones unless the text happens to hold
    one of their names or values; then a row's expected answer differs, and nothing is changed. Ids stay as they are.

    Args:
        scorer: None is each case's own.
        trust: do what the folder says for the plan.
        note: told in a sentence that the plan could not be made.

    Raises:
        ConfigError: no such scorer, or a row that the plan does not know; nothing is changed then.
        CellError: the scorer itself fails; nothing is changed then either.
        StoreError: the rows cannot be written, or what was asked cannot be read.
    """
    if scorer is not None:
        registry.load("scoring", scorer)
    contexts = {(row.length, row.trial) for row in record.rows}
    plan: Plan | None = None
    try:
        plan = plan_again(record.manifest, record.path, contexts, trust=trust)
        cases = {
            (group.length, group.trial, case.depth): (group, case)
            for group in plan.groups
            for case in plan.builder.cases(group)
        }
        tokenizer = record.manifest.get("tokenizer")
        if not isinstance(tokenizer, Mapping) or tokenizer.get("digest") != plan.info.tokenizer.digest:
            plan = None  # ids would be those of another tokenizer
    except (ConfigError, MissingDependency, BackendUnavailable) as err:
        if trust:
            raise
        plan = None
        try:
            cases = cases_alone(recorded_config(record.manifest, record.path, with_settings=False), contexts)
        except ConfigError:
            raise err from None
        note(f"judged without the text, and ids stay as they are: {err}")
    judge = _Judge(cases, plan, scorer)
    with RunFolder(record.path) as folder:
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
