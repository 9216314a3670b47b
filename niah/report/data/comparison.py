"""Runs side by side: which settings are compared, over how many pairs, and what else differed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from niah.errors import ConfigError, near
from niah.report.data.summary import bytes_per_token
from niah.stats.clustered import clustered_interval, contexts_of
from niah.stats.compare import MARGIN, CellDifference, Comparison, cell_differences
from niah.stats.correlation import changes_together
from niah.stats.effective import BAR, EffectiveLength, effective_length
from niah.stats.family import Member, compare_together
from niah.stats.pairs import Pairs, join_rows
from niah.stats.pareto import Point, pareto_edge
from niah.stats.power import ALPHA, ASSUMED_CORRELATION, detectable_drop
from niah.stats.ushape import UShape, ushape, ushape_change
from niah.store.read import RunRecord
from niah.store.schema import Row
from niah.types import JSON

if TYPE_CHECKING:
    pass

# what makes two runs ask different questions: where to find it in run.json, and what it is called
_TEXT_FIELDS = (
    ("asked.task", "task"),
    ("asked.task_options", "task options"),
    ("haystack.digest", "haystack"),
    ("tokenizer.digest", "tokenizer"),
    ("model.template", "chat template"),
    ("asked.answer_budget", "answer budget"),
    ("asked.seed", "seed"),
    ("asked.depths", "depths"),
    ("asked.lengths", "lengths"),
    ("asked.trials", "trials"),
)
_OTHER_SECTIONS = ("model", "versions", "hardware")
_OTHER_ASKED = ("backend", "backend_options", "reuse", "answer_budget")
# they change how long an answer takes, not which one is given
_HARMLESS = ("threads", "ram_bytes", "max_num_seqs", "kv.pool_bytes", "model_check")

_OWN_NAME = re.compile(r"\d{4}-\d\d-\d\d-.+?-((?:\d+-)?[0-9a-f]{10})")


@dataclass(frozen=True, slots=True)
class Side:
    """One setting of one run. ``name`` is the setting, with the run's folder before it when two runs are compared."""

    record: RunRecord
    kv: str
    name: str

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for row in self.record.rows if row.kv == self.kv)


@dataclass(frozen=True, slots=True)
class Differs:
    """Something that was not the same on both sides, in words."""

    what: str
    base: str
    new: str

    def sentence(self) -> str:
        return f"{self.what}: {self.base} → {self.new}"


@dataclass(frozen=True, eq=False)
class Compared:
    """One setting against another, whole and in parts.

    Attributes:
        by_length, by_band: the same comparison for each length and each depth band, with what they cover.
        differs: settings in force, versions, model and machine that were not equal.
    """

    base: Side
    new: Side
    pairs: Pairs
    total: Comparison
    by_length: tuple[tuple[int, Comparison], ...]
    by_band: tuple[tuple[str, Comparison], ...]
    differs: tuple[Differs, ...]
    bar: float = BAR

    def cells(self) -> list[CellDifference]:
        """Every square of the difference map, corrected for their number."""
        return cell_differences(self.pairs)

    def shapes(self) -> tuple[UShape, UShape, UShape]:
        """Shape over depth of the base, of the new setting, and the change."""
        return ushape(self.base.rows), ushape(self.new.rows), ushape_change(self.pairs)

    def effective(self) -> tuple[EffectiveLength, EffectiveLength]:
        """Effective length of the base and of the new setting."""
        return effective_length(self.base.rows, self.bar), effective_length(self.new.rows, self.bar)

    def to_json(self) -> dict[str, JSON]:
        shape_base, shape_new, change = self.shapes()
        far_base, far_new = self.effective()
        return {
            **self.total.to_json(),
            "base_run": str(self.base.record.path),
            "base_kv": self.base.kv,
            "new_run": str(self.new.record.path),
            "new_kv": self.new.kv,
            "by_length": [{"length": length, **part.to_json()} for length, part in self.by_length],
            "by_depth": [{"band": band, **part.to_json()} for band, part in self.by_band],
            "ushape": {"base": shape_base.to_json(), "new": shape_new.to_json(), "change": change.to_json()},
            "effective_length": {"base": far_base.to_json(), "new": far_new.to_json()},
            "differs": [{"what": d.what, "base": d.base, "new": d.new} for d in self.differs],
        }


@dataclass(frozen=True, eq=False)
class ComparisonReport:
    """All comparisons of one call.

    Attributes:
        points: KV bytes per token and accuracy of every setting looked at; ``edge`` names those that none beats.
        notes: what was not compared, and why.
    """

    items: tuple[Compared, ...]
    points: tuple[Point, ...]
    notes: tuple[str, ...] = ()

    @property
    def corrected(self) -> str:
        """That several comparisons are judged together, in words; empty when it is one alone."""
        together = max((item.total.together for item in self.items), default=1)
        if together < 2:
            return ""
        return (
            f"{together} comparisons: p and intervals are corrected for their number (Holm), so that even one wrong "
            f"better or worse among them comes up in at most {ALPHA * 100:g} %; likewise those by length, and by depth"
        )

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return tuple(item.total for item in self.items)

    @property
    def edge(self) -> tuple[str, ...]:
        """Settings on the Pareto edge, by bytes ascending."""
        return tuple(point.name for point in pareto_edge(self.points))

    def to_json(self, exit_code: int = 0) -> dict[str, JSON]:
        """The document of ``niah compare --json``."""
        edge = self.edge
        points = [
            {"name": p.name, "kv_bytes_per_token": p.kv_bytes_per_token, "accuracy": p.accuracy, "edge": p.name in edge}
            for p in self.points
        ]
        return {
            "comparisons": [item.to_json() for item in self.items],
            "pareto": points,
            "notes": list(self.notes),
            "corrected": self.corrected,
            "exit": exit_code,
        }


def compare_records(
    records: Sequence[RunRecord],
    *,
    base_kv: str | None = None,
    kvs: Sequence[str] | None = None,
    margin: float = MARGIN,
    bar: float = BAR,
) -> ComparisonReport:
    """Compare the settings of one run with its reference, or each further run with the first, setting by setting.

    Args:
        base_kv: the setting to compare with; default: the run's reference, or with several runs the same setting.
        kvs: only these new settings.
        margin: largest difference in accuracy, as a share, that counts as none.
        bar: for the effective length.

    Raises:
        ConfigError: nothing can be joined, a name is unknown, or margin or bar is impossible.
    """
    _check_numbers(margin, bar)
    for record in records:
        if not any(row.outcome == "answered" for row in record.rows):
            raise ConfigError(f"the run {str(record.path)!r} has no answered cell yet; run it to its end first.")
    sides = _choose(records, base_kv, kvs)
    joined, notes = [], []
    for base, new in sides:
        pairs = join_rows(base.rows, new.rows)
        if len(pairs):
            joined.append((base, new, pairs))
        else:
            notes.append(f"{new.name} has no pair in common with {base.name}: {_why_no_pair(base, new)}")
    if not joined:
        raise ConfigError(f"nothing can be compared. {notes[0]}.")
    items = _compare_together(joined, margin, bar)
    notes += [note for record in _unique(records) for note in _state_notes(record)]
    return ComparisonReport(items, _points(items), (*notes, *_left_out(records, sides, kvs)))


def _check_numbers(margin: float, bar: float) -> None:
    if not 0 < margin < 1:
        why = "no number of trials can show that two settings are exactly equal; " if margin == 0 else ""
        raise ConfigError(f"the margin cannot be {margin:g}: {why}give a share above 0 and below 1, such as 0.02.")
    if not 0 < bar < 1:
        raise ConfigError(f"the bar cannot be {bar:g}: give a share above 0 and below 1, such as 0.85.")


def _choose(records: Sequence[RunRecord], base_kv: str | None, kvs: Sequence[str] | None) -> list[tuple[Side, Side]]:
    """Which settings meet which."""
    first = records[0]
    base = None if base_kv is None else _known(first, base_kv)
    if len(records) == 1:
        return _inside(first, base, kvs)
    found = []
    for record in records[1:]:
        wanted = record.kvs() if kvs is None else [_known(record, kv) for kv in kvs]
        shared = [kv for kv in wanted if kv in first.kvs()]
        against = base or (None if shared else first.reference or first.kvs()[0])
        for kv in wanted if against else shared:
            left, right = against or kv, kv
            found.append((Side(first, left, _named(first, left)), Side(record, right, _named(record, right))))
    return found


def _inside(record: RunRecord, base: str | None, kvs: Sequence[str] | None) -> list[tuple[Side, Side]]:
    against = base or record.reference
    if against is None:
        raise ConfigError(
            f"the run {str(record.path)!r} has no reference setting; name one with --base: {', '.join(record.kvs())}."
        )
    wanted = record.kvs() if kvs is None else [_known(record, kv) for kv in kvs]
    others = [kv for kv in wanted if kv != against]
    if not others:
        raise ConfigError(
            f"the run {str(record.path)!r} has no setting besides {against!r} to compare; run more with --kv, or give "
            "a second run."
        )
    return [(Side(record, against, against), Side(record, kv, kv)) for kv in others]


def _known(record: RunRecord, kv: str) -> str:
    names = record.kvs()
    if kv not in names:
        raise ConfigError(f"the run {str(record.path)!r} has no KV setting {kv!r}.{near(kv, names)}")
    return kv


def _named(record: RunRecord, kv: str) -> str:
    # a folder that niah named ends in what tells it from others; the rest would only widen every table
    own = _OWN_NAME.fullmatch(record.path.name)
    return f"{own[1] if own else record.path.name}:{kv}"


def _compare_together(joined: Sequence[tuple[Side, Side, Pairs]], margin: float, bar: float) -> tuple[Compared, ...]:
    """All comparisons of a call, in three families: the settings as a whole, their lengths, and their depth bands."""
    members = [Member(base.name, new.name, pairs, _broken(base, new)) for base, new, pairs in joined]
    lengths = [(i, length, part) for i, member in enumerate(members) for length, part in member.pairs.by_length()]
    bands = [(i, name, part) for i, member in enumerate(members) for name, part in member.pairs.by_band()]
    totals = compare_together(members, margin)
    by_length = compare_together([replace(members[i], pairs=part) for i, _, part in lengths], margin)
    by_band = compare_together([replace(members[i], pairs=part) for i, _, part in bands], margin)
    found = []
    for index, ((base, new, pairs), total) in enumerate(zip(joined, totals, strict=True)):
        differs = tuple(_differs(base, new))
        caveats = [*total.caveats, *_power_caveat(total, pairs), *_side_caveats(base, new, differs)]
        found.append(
            Compared(
                base=base,
                new=new,
                pairs=pairs,
                total=replace(total, caveats=tuple(caveats)),
                by_length=tuple((n, part) for (i, n, _), part in zip(lengths, by_length, strict=True) if i == index),
                by_band=tuple((n, part) for (i, n, _), part in zip(bands, by_band, strict=True) if i == index),
                differs=differs,
                bar=bar,
            )
        )
    return tuple(found)


def _broken(*sides: Side) -> list[str]:
    return [side.name for side in sides if side.record.broken(side.kv)]


def _points(items: Sequence[Compared]) -> tuple[Point, ...]:
    """Every setting looked at, once. A broken one has no accuracy worth a place on the edge."""
    sides = {(side.record.path, side.kv): side for item in items for side in (item.base, item.new)}
    found = []
    for side in sides.values():
        answered = [row.correct is True for row in side.rows if row.outcome == "answered"]
        share = sum(answered) / len(answered) if answered and not side.record.broken(side.kv) else None
        found.append(Point(side.name, bytes_per_token(side.rows), share))
    return tuple(found)


def point_interval(item: ComparisonReport, name: str) -> tuple[float, float] | None:
    """95 % interval of one point's accuracy, robust to questions of one text failing together, for its error bar."""
    for compared in item.items:
        for side in (compared.base, compared.new):
            if side.name == name:
                interval = clustered_interval(contexts_of(side.rows))
                return (interval.low, interval.high)
    return None


def _power_caveat(total: Comparison, pairs: Pairs) -> Iterable[str]:
    """What the pairs could have shown, where they showed nothing."""
    if total.verdict == "too few to say" and not total.broken and not total.few_contexts:
        seen = changes_together(pairs)
        correlation = ASSUMED_CORRELATION if seen is None else seen
        drop = detectable_drop(total.pairs, total.contexts, correlation, 1 - total.confidence)
        sees = f"a drop of {drop * 100:g} points or more" if drop else "no drop below 60 points"
        source = "taken for granted" if seen is None else "as these pairs show"
        yield (
            f"{total.pairs:,} pairs in {total.contexts} contexts find {sees} with 80 % power (changes of one context "
            f"correlated by {correlation:.2f}, {source}); more trials see more"
        )


def _side_caveats(base: Side, new: Side, differs: Sequence[Differs]) -> Iterable[str]:
    models = [str(manifest_value(side.record.manifest, "model.name")) for side in (base, new)]
    if models[0] != models[1]:
        yield f"the models differ ({models[0]} and {models[1]}): the difference is not the KV setting's alone"
    backends = [str(manifest_value(side.record.manifest, "asked.backend")) for side in (base, new)]
    if backends[0] != backends[1]:
        yield f"the backends differ ({backends[0]} and {backends[1]}): the difference is not the KV setting's alone"
    besides = [d.what for d in differs if d.what.startswith("in force: ") and not d.what.startswith("in force: kv.")]
    if besides and models[0] == models[1] and backends[0] == backends[1]:
        names = ", ".join(what.removeprefix("in force: ") for what in besides)
        yield f"besides the cache itself, this differed in force: {names}"


def _differs(base: Side, new: Side) -> Iterable[Differs]:
    """Settings in force, and between two runs model, versions, machine and how the backend was asked."""
    left, right = base.record.setting(base.kv), new.record.setting(new.kv)
    yield from _unequal("in force: ", left.get("effective"), right.get("effective"))
    if base.record.path == new.record.path:
        return
    if base.kv == new.kv:
        yield from _unequal("setting: ", left.get("asked"), right.get("asked"))
    for section in _OTHER_SECTIONS:
        yield from _unequal(f"{section}: ", base.record.manifest.get(section), new.record.manifest.get(section))
    for name in _OTHER_ASKED:
        yield from _unequal("asked: ", _part(base.record, name), _part(new.record, name))


def _part(record: RunRecord, name: str) -> dict[str, JSON]:
    return {name: manifest_value(record.manifest, f"asked.{name}")}


def _unequal(prefix: str, left: JSON, right: JSON) -> Iterable[Differs]:
    old, now = _flat(left), _flat(right)
    for key in dict.fromkeys([*old, *now]):
        if old.get(key) != now.get(key) and key not in _HARMLESS:
            yield Differs(prefix + key, _shown(old.get(key)), _shown(now.get(key)))


def _flat(value: JSON, prefix: str = "") -> dict[str, JSON]:
    if not isinstance(value, Mapping):
        return {prefix: value} if prefix else {}
    found: dict[str, JSON] = {}
    for key, inner in value.items():
        found |= _flat(inner, f"{prefix}.{key}" if prefix else str(key))
    return found


def _shown(value: JSON) -> str:
    return "–" if value is None else str(value)


def manifest_value(manifest: Mapping[str, JSON], path: str) -> JSON:
    """What a manifest says under a dotted name, ``model.name``; None where it says nothing."""
    value: JSON = manifest
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _why_no_pair(base: Side, new: Side) -> str:
    if base.record.path == new.record.path:
        return "no cell is answered under both"
    old, now = base.record.manifest, new.record.manifest
    unequal = [(path, name) for path, name in _TEXT_FIELDS if manifest_value(old, path) != manifest_value(now, path)]
    if not unequal:
        return "the same questions were asked, but no cell is answered in both"
    parts = [
        f"{name} {_shown(manifest_value(old, path))} and {_shown(manifest_value(now, path))}" for path, name in unequal
    ]
    return "they differ in what was asked: " + "; ".join(parts)


def _unique(records: Sequence[RunRecord]) -> list[RunRecord]:
    return list({record.path: record for record in records}.values())


def _state_notes(record: RunRecord) -> Iterable[str]:
    status = record.manifest.get("status")
    cells = manifest_value(record.manifest, "plan.cells")
    if status != "finished":
        of = f" of {cells}" if isinstance(cells, int) else ""
        yield f"{record.path.name} is {status or 'not finished'}: {len(record.rows)}{of} cells so far"
    if record.bad_lines:
        yield f"{record.path.name}: {len(record.bad_lines)} lines of rows.jsonl cannot be read and are left out"


def _left_out(
    records: Sequence[RunRecord], sides: Sequence[tuple[Side, Side]], kvs: Sequence[str] | None
) -> Iterable[str]:
    if kvs is not None or len(records) == 1:
        return
    used = {(side.record.path, side.kv) for pair in sides for side in pair}
    for record in _unique(records):
        missing = [kv for kv in record.kvs() if (record.path, kv) not in used]
        if missing:
            yield f"{record.path.name}: {', '.join(missing)} left out, the other side has no such setting (see --base)"
