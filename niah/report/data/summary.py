"""The figures of a run that stand in tables and sentences: accuracy and bytes of each KV setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from niah.grid import counted, off_depths, off_words
from niah.report.data.cost import cost_sentence, cost_usd
from niah.report.data.difference import build_difference
from niah.report.data.grid import CellSummary, summarize
from niah.stats.clustered import LEANING
from niah.stats.power import MIN_CONTEXTS
from niah.store.read import RunRecord, newest
from niah.store.schema import Row

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class SettingSummary:
    """One KV setting of a run.

    Attributes:
        total: counts, accuracy and its interval over the whole grid.
        kv_bytes_per_token: logical bytes of answered cells over the tokens stored; None where not observable.
        ratio: logical bytes over those of a 16-bit cache of the same model and tokens; below 1 is smaller.
        delta: accuracy minus the reference's, over the pairs that both answered; None for the reference itself.
        pairs: how many pairs ``delta`` rests on.
        cost_usd: what its cells were billed; None where nobody knows.
    """

    kv: str
    total: CellSummary
    kv_bytes_per_token: float | None
    ratio: float | None
    broken: bool
    is_reference: bool
    delta: float | None = None
    pairs: int = 0
    cost_usd: float | None = None

    @property
    def share_of_asked(self) -> float | None:
        """Hits over all that was asked: what accuracy would be if every missing answer were a miss."""
        return self.total.hits / self.total.trials if self.total.trials else None


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """KV memory of the longest stored cache at one length, in bytes; None where not known."""

    length: int
    tokens: int
    logical_bytes: int | None
    allocated_bytes: int | None
    formula_bytes: int | None
    reference_bytes: int | None
    naive_mha_bytes: int | None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Cells of one setting whose measured bytes are not what the formula says, with the largest such case."""

    kv: str
    cells: int
    length: int
    tokens: int | None
    logical_bytes: int
    formula_bytes: int


@dataclass(frozen=True, slots=True)
class FailureKind:
    """How many cells of one setting have no answer for one reason, with the first such message."""

    kv: str
    kind: str
    cells: int
    message: str


def summaries(record: RunRecord) -> list[SettingSummary]:
    """One summary a KV setting, in the manifest's order."""
    found = []
    for kv in record.kvs():
        own = [row for row in record.rows if row.kv == kv]
        is_reference = kv == record.reference
        pairs = None
        if record.reference is not None and not is_reference:
            pairs = build_difference(record.rows, record.rows, kv, record.reference).total()
        found.append(
            SettingSummary(
                kv=kv,
                total=summarize(own),
                kv_bytes_per_token=bytes_per_token(own),
                ratio=_ratio(own),
                broken=record.broken(kv),
                is_reference=is_reference,
                delta=pairs.delta if pairs else None,
                pairs=pairs.pairs if pairs else 0,
                cost_usd=cost_usd(own),
            )
        )
    return found


def bytes_per_token(rows: Iterable[Row]) -> float | None:
    """Logical KV bytes over tokens stored, summed over answered rows that know both."""
    known = [
        (row.kv_memory.logical_bytes, row.kv_memory.tokens)
        for row in rows
        if row.outcome == "answered" and row.kv_memory.logical_bytes is not None and row.kv_memory.tokens
    ]
    return sum(size for size, _ in known) / sum(tokens for _, tokens in known) if known else None


def _ratio(rows: Iterable[Row]) -> float | None:
    known = [
        (row.kv_memory.logical_bytes, row.kv_memory.reference_bytes)
        for row in rows
        if row.outcome == "answered" and row.kv_memory.logical_bytes is not None and row.kv_memory.reference_bytes
    ]
    return sum(size for size, _ in known) / sum(reference for _, reference in known) if known else None


def memory_points(rows: Iterable[Row]) -> list[MemoryPoint]:
    """One point a length: the row that stored the most tokens, so that points lie on one curve."""
    most: dict[int, MemoryPoint] = {}
    for row in rows:
        usage = row.kv_memory
        if usage.tokens is None or (usage.logical_bytes is None and usage.formula_bytes is None):
            continue
        before = most.get(row.length)
        if before is None or usage.tokens > before.tokens:
            most[row.length] = MemoryPoint(
                row.length,
                usage.tokens,
                _positive(usage.logical_bytes),
                _positive(usage.allocated_bytes),
                _positive(usage.formula_bytes),
                _positive(usage.reference_bytes),
                _positive(usage.naive_mha_bytes),
            )
    return [most[length] for length in sorted(most)]


def _positive(size: int | None) -> int | None:
    # log axes have no place for an empty cache, nor for an edited row's nonsense
    return size if size is not None and size > 0 else None


def mismatches(record: RunRecord) -> list[Mismatch]:
    """Settings whose measured logical bytes differ from the formula anywhere."""
    found = []
    for kv in record.kvs():
        wrong = [
            (abs(usage.logical_bytes - usage.formula_bytes), row.length, usage.tokens, usage)
            for row in record.rows
            if row.kv == kv and (usage := row.kv_memory).source.startswith(("measured", "reported"))
            and usage.logical_bytes is not None and usage.formula_bytes is not None
            and usage.logical_bytes != usage.formula_bytes
        ]  # fmt: skip
        if wrong:
            _, length, tokens, usage = max(wrong, key=lambda item: item[:2])
            found.append(Mismatch(kv, len(wrong), length, tokens, usage.logical_bytes or 0, usage.formula_bytes or 0))
    return found


def failure_kinds(rows: Iterable[Row]) -> list[FailureKind]:
    """Cells without an answer by setting and kind, most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    message: dict[tuple[str, str], str] = {}
    for row in newest(rows).values():
        if row.outcome != "answered":
            counts[row.kv, row.error_kind] += 1
            message.setdefault((row.kv, row.error_kind), row.error or row.stop)
    kinds = [FailureKind(kv, kind, cells, message[kv, kind]) for (kv, kind), cells in counts.items()]
    return sorted(kinds, key=lambda item: (-item.cells, item.kv, item.kind))


def summary_sentences(record: RunRecord) -> list[str]:
    """What the run says, in words: each setting's accuracy and bytes, what is broken, what has no answer."""
    settings = summaries(record)
    sentences = [_setting_sentence(item, record.reference) for item in settings if not item.broken]
    broken = [item.kv for item in settings if item.broken]
    if broken:
        verb, its = ("is", "its map is") if len(broken) == 1 else ("are", "their maps are")
        sentences.append(
            f"{_list(broken)} {verb} broken: the canary failed, so {its} not to be read as a cost of the setting."
        )
    sentences += few_texts(settings)
    failed = sum(item.total.failed for item in settings)
    other = sum(item.total.truncated + item.total.refused for item in settings)
    if failed:
        sentences.append(f"{counted(failed, 'cell')} failed: asked again by the same command, not counted as wrong.")
    if other:
        sentences.append(
            f"{counted(other, 'cell')} {'was' if other == 1 else 'were'} truncated or refused and not scored."
        )
    off = _off_sentence(record)
    if off:
        sentences.append(off)
    cost = cost_sentence(record)
    if cost:
        sentences.append(cost)
    return sentences or ["No cell has been run yet."]


def few_texts(settings: Sequence[SettingSummary]) -> list[str]:
    """Whose interval is no observation alone: from few texts nobody sees how far their questions fail together."""
    found = [item for item in settings if item.total.is_assumed and not item.broken]
    if not found:
        return []
    most = max(item.total.contexts for item in found)
    texts = "1 text" if most == 1 else f"at most {most} texts" if len(found) > 1 else f"{most} texts"
    sentence = (
        f"The interval of {_list([item.kv for item in found])} rests on {texts} (lengths × trials), too few to see how "
        f"far questions of one text fail together: it takes a correlation of {LEANING:g} for granted, and "
        f"{MIN_CONTEXTS} texts would show it."
    )
    return [sentence]


def _off_sentence(record: RunRecord) -> str:
    """Which needles do not lie where they were asked; nothing where all do."""
    places = [(row.length, row.depth, row.depth_real) for row in record.rows if row.depth_real is not None]
    off = off_depths(places)
    squares = len({(length, depth) for length, depth, _ in places})
    return f"Of the depths at each length, {off_words(off, squares)}." if off else ""


def _setting_sentence(item: SettingSummary, reference: str | None) -> str:
    total = item.total
    if total.share is None:
        return f"{item.kv} has no answered cell."
    interval = f"{percent(total.interval.low)}–{percent(total.interval.high)}"
    answered = counted(total.answered, "cell")
    text = f"{item.kv} answers {percent(total.share)} of {answered} right (95 % interval {interval})"
    if item.delta is not None and reference is not None:
        change = round(item.delta * 100, 1)
        versus = "as many as" if change == 0 else f"{abs(change):g} points {'more' if change > 0 else 'fewer'} than"
        text += f", {versus} {reference} on the same {counted(item.pairs, 'pair')}"
    if item.kv_bytes_per_token is None:
        return f"{text}; its KV bytes cannot be observed."
    text += f", with {item.kv_bytes_per_token:,.0f} KV bytes per token"
    if item.ratio is not None and not item.is_reference:
        text += f" ({percent(item.ratio)} of a 16-bit cache)"
    return f"{text}."


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def percent(share: float) -> str:
    """A share as people read it: 0.964 is ``96.4 %``, 1 is ``100 %``; only a full share is shown as 100 %."""
    text = f"{share * 100:.1f}"
    if text in {"100.0", "0.0"}:
        text = {"100.0": "100" if share >= 1 else "99.9+", "0.0": "0" if share <= 0 else "<0.1"}[text]
    return f"{text} %"


def human_bytes(size: float) -> str:
    """Bytes in the largest binary unit that keeps a number of at least 1: 3,145,728 is ``3 MiB``."""
    power = 0
    while size >= 1024 and power < len(_BINARY) - 1:
        size /= 1024
        power += 1
    return f"{size:.4g} {_BINARY[power]}"
