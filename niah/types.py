"""Frozen values that flow through a run. No third-party types: every layer above may use them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, Union

JSON: TypeAlias = Any  # what json.dumps takes; recursive aliases buy little here
OutcomeKind = Literal["answered", "refused", "truncated", "failed"]
MemorySource = Literal["measured_blocks", "measured_tensors", "sampled_metrics", "reported", "not_observable"]

ROW_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Needle:
    """One fact hidden in the haystack.

    Attributes:
        depth: asked depth, 0 (before the first haystack sentence) to 1 (after the last).
        text: the sentence as it is inserted, without surrounding white space.
        key: what the question asks about.
        value: the answer.
        asked: False for a needle that is only there to be confused with.
    """

    depth: float
    text: str
    key: str
    value: str
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """What one cell hides and asks. Cases of one context share ``needles`` and ``instruction``.

    Attributes:
        question: asked after the haystack; never holds the answer.
        answer_prefix: the start of the reply, put after the assistant header; empty when switched off.
        expected: accepted answers.
        gold: the continuation whose log-probability is measured, with its leading space if it has one.
        distractors: values of other needles in the same context: answering one of them is a confusion.
    """

    depth: float
    needles: tuple[Needle, ...]
    instruction: str
    question: str
    answer_prefix: str
    expected: tuple[str, ...]
    gold: str
    distractors: tuple[str, ...]
    scorer: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a needle really went. Offsets count tokens from the start of the prompt."""

    key: str
    depth: float
    depth_real: float
    token_offset: int
    token_count: int
    asked: bool


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as token ids: ``context`` is shared by all questions of a context, ``tail`` is this question's.

    Attributes:
        context: int32 ids of template head, instruction, haystack and needles.
        tail: int32 ids of question, template tail and answer prefix.
        gold: ids of the expected continuation.
        answer_budget: tokens the answer may take; ``len(context) + len(tail) + answer_budget == length``.
        sha256: of context + tail as little-endian int32.
        context_key: equal for prompts with the same context.
        counted: tokens of the prompt as a provider or server counts it, where it is sent as text; None where the ids
            themselves are sent.
        counted_by: who counted; starts with ``estimate`` where it is one.
    """

    context: array[int]
    tail: array[int]
    gold: tuple[int, ...]
    answer_budget: int
    case: Case
    depth_real: float
    placements: tuple[Placement, ...]
    sha256: str
    context_key: str
    counted: int | None = None
    counted_by: str = ""

    @property
    def token_count(self) -> int:
        return len(self.context) + len(self.tail) if self.counted is None else self.counted

    def ids(self) -> list[int]:
        """The whole prompt as one list of token ids."""
        return [*self.context, *self.tail]


@dataclass(frozen=True, slots=True)
class KVUsage:
    """KV-cache memory of one answered cell, in bytes; None where it cannot be observed, never zero instead.

    Attributes:
        tokens: tokens whose K/V is stored at the end: prompt + generated − 1 (the last one has none yet).
        logical_bytes: what those tokens occupy, counted on the tensors or blocks really stored.
        allocated_bytes: storages or blocks really held, at their peak.
        pool_bytes: reserved by the engine.
        formula_bytes: computed from the model's shape before the run.
        reference_bytes: a 16-bit cache of the same model and length, by formula.
        naive_mha_bytes: the textbook formula 2·layers·hidden·tokens·2, which ignores grouped-query attention.
    """

    tokens: int | None = None
    logical_bytes: int | None = None
    allocated_bytes: int | None = None
    pool_bytes: int | None = None
    formula_bytes: int | None = None
    reference_bytes: int | None = None
    naive_mha_bytes: int | None = None
    source: MemorySource = "not_observable"


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; 0 where it is not known.

    Attributes:
        prefill_s, total_s: of a context whose questions are answered together each row carries its share.
        first_token_s: from when the context was begun to this answer's first token, the whole prefill included.
    """

    prefill_s: float = 0.0
    first_token_s: float = 0.0
    total_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine said to one prompt.

    Attributes:
        stop: ``stop`` (answer complete), ``end`` (end-of-sequence), ``length`` (budget used up), ``refused``.
        logprob: natural log-probability of the expected continuation, summed over its tokens.
        answer_logprob: natural log-probability of what was said, summed over its tokens: all that most APIs tell.
        prompt_tokens: as counted by the engine itself, cached ones included; None where a reply does not say.
        output_tokens: generated, reasoning included; None where a reply does not say.
        cached_tokens: prompt tokens whose K/V was reused.
        cache_write_tokens: prompt tokens that a provider bills as written to its cache.
        reasoning_tokens: of the output tokens, those that are no part of the answer.
        requests: how often it was asked until there was a reply.
        batched: it came in a batch, which has a price of its own.
    """

    text: str
    stop: str
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int = 0
    logprob: float | None = None
    reasoning: str = ""
    answer_logprob: float | None = None
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 1
    batched: bool = False
    timing: Timing = field(default_factory=Timing)
    memory: KVUsage = field(default_factory=KVUsage)


@dataclass(frozen=True, slots=True)
class Failure:
    """A cell that has no answer: it is asked again, never counted as wrong."""

    kind: str
    message: str
    retryable: bool = False


Reply: TypeAlias = Union[Answer, Failure]


@dataclass(frozen=True, slots=True)
class Score:
    """A scorer's judgement. ``value`` is 0–1."""

    value: float
    correct: bool
    why: str
    scorer: str
    version: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a setting cannot run: which field, its value, the reason and what to do instead."""

    field: str
    value: str
    reason: str
    suggestion: str = ""

    def sentence(self) -> str:
        end = f" {self.suggestion}" if self.suggestion else ""
        return f"{self.field} {self.value!r}: {self.reason}.{end}"


@dataclass(frozen=True, slots=True)
class Host:
    """What this machine can do, as far as KV settings care."""

    device: str = "cpu"
    cores: int = 1
    ram_bytes: int | None = None
    bf16: bool = False
    cpu_flags: frozenset[str] = frozenset()
    gpu_name: str = ""
    gpu_bytes: int | None = None
    gpu_count: int = 0
    compute_capability: tuple[int, int] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


class Scorer(Protocol):
    """Judges an answer. Pure: no files, no model."""

    def __call__(self, answer: str, case: Case) -> Score: ...
