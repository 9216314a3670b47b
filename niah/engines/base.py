"""What a backend is: it describes a model, refuses settings it cannot honor, and opens sessions that answer groups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic.fields import FieldInfo

from niah import registry
from niah.engines.support import Support, undeclared
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.prompts.tokens import Counter, Template, Tokenizer
from niah.registry import Plugin
from niah.types import Answer, Host, Problem, Prompt, Reply


class BackendOptions(BaseModel):
    """Options of a backend, set by ``--set backend.NAME=…``; unknown keys are errors.

    A field whose ``json_schema_extra`` says ``{"changes_answer": False}`` (threads, chunk sizes that only cost time)
    stays out of a cell's identity, so changing it keeps finished cells. One that says ``{"since": …}`` came after cells
    had been made, and stays out while it has its default, which is what those were made with. One that says
    ``{"formerly": …}`` had another name, which is still taken and still stands for it in the identity.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def identity(self) -> dict[str, Any]:
        """The options that can change an answer, by the names that they had first."""
        fields = type(self).model_fields
        quiet = {name for name, info in fields.items() if _note(info, "changes_answer") is False}
        later = {
            name
            for name, info in fields.items()
            if _note(info, "since") is not None and getattr(self, name) == info.get_default(call_default_factory=True)
        }
        values = self.model_dump(mode="json", exclude=quiet | later)
        return {str(_note(fields[name], "formerly") or name): value for name, value in values.items()}

    @model_validator(mode="before")
    @classmethod
    def _take_former_names(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        values = dict(data)
        for name, info in cls.model_fields.items():
            former = _note(info, "formerly")
            if former not in values:
                continue
            if name in values:
                raise ValueError(f"{former} is the former name of {name}: give one of the two")
            values[name] = values.pop(former)
        return values


def _note(info: FieldInfo, name: str) -> Any:
    """What a field's ``json_schema_extra`` says of it; None where it says nothing."""
    return info.json_schema_extra.get(name) if isinstance(info.json_schema_extra, dict) else None


QUIET: dict[str, Any] = {"changes_answer": False}


def _as_iso(value: object) -> object:
    """YAML reads a date where a string looks like one."""
    return value.isoformat()[: len("2025-01-01")] if isinstance(value, date) else value


# an ISO day that a chat template prints; quiet as an option, since the template's digest holds what it prints
Day = Annotated[str, BeforeValidator(_as_iso)]


@dataclass(frozen=True)
class ModelInfo:
    """A model as the plan needs it, known without loading weights.

    Attributes:
        name: as the user said it.
        source: what the engine loads: a folder or hub id.
        revision: hub commit, or a digest of the local files.
        shape: None when the cache cannot be known (hosted models, fake backends).
        context_tokens: longest prompt + answer the model was made for; None when unknown.
        reference_kv: preset of the model's own 16-bit cache; None where the cache can be neither chosen nor seen.
        numerics: what the engine will compute with on this machine (device, dtype): part of a cell's identity.
        provider: who bills the tokens, by the name that genai-prices has for it; None where tokens cost nothing.
        priced_as: the model's name in that price list where it is not ``name``.
        counter: counts prompts that are sent as text, so that they are sized by it; None where ids are sent.
        reasoning_tokens: that an answer may take on top of its budget.
        assistant_prefill: whether the start of the answer can be given as the assistant's words; where not, tasks
            leave it out.
    """

    name: str
    source: str
    revision: str
    tokenizer: Tokenizer
    template: Template
    shape: ModelShape | None = None
    context_tokens: int | None = None
    reference_kv: str | None = "bf16"
    numerics: dict[str, str] = field(default_factory=dict)
    provider: str | None = None
    priced_as: str = ""
    counter: Counter | None = None
    reasoning_tokens: int = 0
    assistant_prefill: bool = True


@dataclass(frozen=True)
class SessionRequest:
    """One KV setting to be opened.

    Attributes:
        max_length: longest cell of the plan in tokens, answer included.
        reuse: whether processed prefixes may be used again.
        is_complete: tells from text and case that decoding may stop.
        on_reply: may be called with a prompt and its reply as soon as it is there; ``answer`` still returns it.
        on_discarded: called with a reply that is no answer and was yet billed: empty, or reasoning alone.
        on_tokens: called with the number of prompt tokens processed, for progress.
        on_sample: called with readings of a server or card while groups are in flight; kept as ``metrics.parquet``.
    """

    kv: KVConfig
    max_length: int
    reuse: bool
    is_complete: Callable[[str, Any], bool]
    on_reply: Callable[[Prompt, Reply], None] = lambda *_: None
    on_discarded: Callable[[Answer], None] = lambda _: None
    on_tokens: Callable[[int], None] = lambda _: None
    on_sample: Callable[[Mapping[str, float]], None] = lambda _: None


class Session(Protocol):
    """A loaded model under one KV setting."""

    @property
    def max_in_flight(self) -> int:
        """How many groups may be asked at a time."""
        ...

    def effective(self) -> dict[str, Any]:
        """Settings really in force, read back from the engine: flat names to strings and numbers."""
        ...

    async def answer(self, group: Sequence[Prompt]) -> list[Reply]:
        """Answers to prompts that share their context, in order. A fault becomes a ``Failure``, never an answer."""
        ...


@dataclass(frozen=True, slots=True)
class BatchState:
    """How far a batch is at the service.

    Attributes:
        word: the service's own name of the state.
        done, requests: requests that have finished, and all of them; 0 where the service does not say.
        is_over: no further results will come.
        fault: why the batch was refused as a whole; empty where single requests have results.
    """

    word: str
    done: int
    requests: int
    is_over: bool
    fault: str = ""


class Batches(Protocol):
    """Requests handed in together and answered within a day, at a lower price.

    Attributes:
        most_requests, most_bytes: that one batch may have.
        most_tokens: prompt tokens that may wait at the service at a time; None sets no limit.
        poll_s: seconds between two queries of a batch's state.
        settle_s: seconds after which a batch that may have arrived would be seen.
        is_marked: whether a batch found again is surely ours; if not, its results tell.
    """

    most_requests: int
    most_bytes: int
    most_tokens: int | None
    poll_s: float
    settle_s: float
    is_marked: bool

    def line(self, custom_id: str, prompt: Prompt) -> bytes:
        """One request of a batch: a line of JSON. Raises ``CellError`` where the prompt cannot be sent."""
        ...

    async def submit(self, label: str, file: Path) -> str:
        """Hand in a file of lines; returns the service's id.

        Raises:
            BackendUnavailable: it has not arrived: it was refused.
            CellError: it is not known whether the batch has arrived.
        """
        ...

    async def find(self, label: str, requests: int, since: float) -> list[str]:
        """Ids of batches that may be the one that was handed in at ``since`` (Unix seconds), the likeliest first.

        Raises:
            BackendUnavailable: the service cannot be asked.
        """
        ...

    async def state(self, batch_id: str) -> BatchState:
        """Raises ``BackendUnavailable`` where the service cannot be asked or has no such batch."""
        ...

    async def replies(self, batch_id: str) -> list[tuple[str, Callable[[Prompt], Reply]]]:
        """What came of each request, by its custom id and in any order: a reply to the prompt that is given.

        Raises:
            BackendUnavailable: the results cannot be read; a reply raises it where no request can be answered.
        """
        ...


@runtime_checkable
class BatchSession(Session, Protocol):
    """A session that can hand in batches beside answering at once."""

    @property
    def batches(self) -> Batches: ...


class Engine(Protocol):
    """Whatever is shared between KV settings: loaded weights, or nothing."""

    def session(self, request: SessionRequest) -> AbstractAsyncContextManager[Session]: ...


B = TypeVar("B", bound=BackendOptions)


@dataclass(frozen=True)
class _PerSession(Generic[B]):
    """An engine without anything shared: each session starts what it needs."""

    options: B
    info: ModelInfo
    start: Callable[[B, ModelInfo, SessionRequest], AbstractAsyncContextManager[Session]]

    def session(self, request: SessionRequest) -> AbstractAsyncContextManager[Session]:
        return self.start(self.options, self.info, request)


def per_session(
    start: Callable[[B, ModelInfo, SessionRequest], AbstractAsyncContextManager[Session]],
) -> Callable[[B, ModelInfo], AbstractAsyncContextManager[Engine]]:
    """``open`` of a backend whose KV setting is an argument of the engine itself, or that has none to share."""

    @asynccontextmanager
    async def opened(options: B, info: ModelInfo) -> AsyncIterator[Engine]:
        yield _PerSession(options, info, start)

    return opened


@dataclass(frozen=True)
class BackendPlugin(Plugin, Generic[B]):
    """A backend.

    Attributes:
        describe: tokenizer, template and shape of a model name; loads no weights.
        check: pure; every reason why a declared KV setting cannot run here: with this model, host or these options.
        open: loads what is shared.
        default_model, default_kv: used when the user names none.
        version: goes into every cell's identity; raise it when the same request may get another answer.
        requires: ``(package, extra)`` that must be importable.
        has_batches: its sessions are ``BatchSession``s.
        is_known_here: whether ``describe`` of this model asks nobody, reads no key and runs no code but ours: only then
            is it called for a run folder, which somebody else may have written.
        sketch: what a plan can say of a model behind a service without asking it, counts being estimates; for plans
            that are made where there is no key.
        support: the formats and aspects of KV settings that it honors; anything else is refused.
    """

    kind: ClassVar[str] = "backends"
    options: type[B]
    describe: Callable[[B, str], ModelInfo]
    check: Callable[[B, KVConfig, ModelShape | None, Host], list[Problem]]
    open: Callable[[B, ModelInfo], AbstractAsyncContextManager[Engine]]
    default_model: str = ""
    default_kv: tuple[str, ...] = ("bf16",)
    version: int = 1
    requires: tuple[tuple[str, str], ...] = ()
    has_batches: bool = False
    is_known_here: Callable[[B, str], bool] = lambda *_: False
    sketch: Callable[[B, str], ModelInfo] | None = None
    support: Callable[[], Support] = Support

    def problems(self, options: B, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:
        """Every reason why a KV setting cannot run: what is not declared, then what ``check`` finds; pure."""
        others = ((name, its.support()) for name, its in registry.load_all("backends")[0].items())
        refused = list(undeclared(kv, self.name, self.support(), others))
        found = self.check(options, kv, shape, host)
        # what is said of a setting that nobody can run here would only repeat it
        return [*refused, *(problem for problem in found if not refused or problem.field != "kv")]
