"""A row: everything that is known about one asked cell, as it stands in ``rows.jsonl``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from niah.errors import StoreError
from niah.types import JSON, ROW_SCHEMA, KVUsage, OutcomeKind, Timing

_MOST: dict[type, float] = {bool: 1, int: 2**63 - 1, float: 1e30}
Count = Annotated[int, Field(ge=0)]
Unit = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cell's outcome. Field names are stable; new ones may be added.

    Attributes:
        cell_id: identity of everything that can change the answer; resuming goes by it.
        pair_id: the same without backend, model and KV setting; comparing joins on it.
        length: the whole token budget of the cell, answer budget included.
        depth, depth_real: asked and real position of the needle, 0 (start) to 1 (end).
        prompt_tokens: tokens sent, by our count; ``engine_prompt_tokens`` by the engine's.
        outcome: only ``answered`` rows are right or wrong; they alone have ``correct`` and ``score`` (0–1).
        why: the scorer's reason.
        logprob: natural log-probability of the expected continuation, summed over its tokens.
        answer_logprob: natural log-probability of the answer itself, where an API tells it.
        counted_by: who counted ``prompt_tokens`` of a prompt sent as text; starts with ``estimate`` where it is one.
        count_difference: ``engine_prompt_tokens`` minus ``prompt_tokens``.
        cache_write_tokens, reasoning_tokens: parts of the prompt's and the output's tokens that are billed apart.
        requests: how often an API was asked until there was a reply.
        cost_usd: what the answer was billed, in US dollars; None where nobody bills it or it is not known, 0 from
            the answer cache.
        answer_cached: whether the answer came from the answer cache and was not asked for.
        stop: why generation ended.
        attempt: 1 for the first try.
        error: ``kind: message`` of a cell that has no answer.
        answer_prefix: whether the start of the reply was given to the model.
        finished_at: ISO 8601 time with offset.

    Raises:
        ValueError: an answered row lacks ``correct`` or ``score``.
    """

    cell_id: str
    pair_id: str
    backend: str
    model: str
    kv: str
    task: str
    haystack: str
    length: Annotated[int, Field(ge=1)]
    depth: Unit
    trial: Count
    outcome: OutcomeKind
    depth_real: Unit | None = None
    prompt_tokens: Count | None = None
    answer_budget: Count | None = None
    engine_prompt_tokens: Count | None = None
    output_tokens: Count | None = None
    correct: bool | None = None
    score: Unit | None = None
    scorer: str = ""
    why: str = ""
    answer: str = ""
    reasoning: str = ""
    answer_prefix: bool = False
    expected: tuple[str, ...] = ()
    logprob: float | None = None
    answer_logprob: float | None = None
    stop: str = ""
    counted_by: str = ""
    count_difference: int | None = None
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    requests: Count | None = None
    cost_usd: Annotated[float, Field(ge=0)] | None = None
    answer_cached: bool = False
    attempt: Annotated[int, Field(ge=1)] = 1
    error: str | None = None
    kv_memory: KVUsage = field(default_factory=KVUsage)
    timing: Timing = field(default_factory=Timing)
    prompt_sha256: str = ""
    finished_at: str = ""
    schema: int = ROW_SCHEMA

    def __post_init__(self) -> None:
        if self.outcome == "answered" and (self.correct is None or self.score is None):
            # without this an answered row without a judgement would be counted as wrong
            raise ValueError("an answered row needs both 'correct' and 'score'")

    @property
    def error_kind(self) -> str:
        """The machine name before the colon of ``error``; the outcome where there is none."""
        match = re.match(r"([a-z][a-z0-9_]*)(?::|$)", self.error or "")
        return match.group(1) if match else self.outcome

    def to_json(self) -> dict[str, JSON]:
        """A mapping that ``json.dumps`` takes, ``schema`` first. Numbers that JSON cannot hold become None."""
        values = _finite(asdict(self))
        return {"schema": values.pop("schema"), **values}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Row:
        """The inverse of ``to_json``. Unknown fields are ignored: they come from a newer niah with the same schema.

        Raises:
            ValueError: a required field is missing or a field has the wrong type; the message names it.
            StoreError: the row's schema is newer than this version of niah knows.
        """
        schema = data.get("schema", ROW_SCHEMA)
        if isinstance(schema, int) and schema > ROW_SCHEMA:
            raise StoreError(
                f"this row has schema {schema}, written by a newer niah; this one reads up to schema {ROW_SCHEMA}. "
                "Update niah to read it."
            )
        try:
            row = _adapter().validate_python(dict(data))
        except ValidationError as err:
            first = err.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "row"
            raise ValueError(f"{where}: {first['msg']}") from err
        _check_size(asdict(row))
        return row


def _check_size(values: Mapping[str, Any]) -> None:
    """Numbers that a table can hold and add up: whole ones of 64 bits, others that are no nonsense."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            _check_size(value)
        elif isinstance(value, int | float) and not -_MOST[type(value)] <= value <= _MOST[type(value)]:
            raise ValueError(f"{name}: too large for a number of its kind")


@cache
def _adapter() -> TypeAdapter[Row]:
    return TypeAdapter(Row)


def _finite(value: Any) -> Any:
    """The same value with NaN and infinities replaced by None, and tuples by lists."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def row_json_schema() -> dict[str, JSON]:
    """The JSON Schema (2020-12) of one line of ``rows.jsonl``."""
    schema = _adapter().json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "niah row"}
