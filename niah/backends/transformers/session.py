"""A session of the transformers backend: prefill a context once, answer its questions, count the cache's bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from niah.backends.transformers.forked import answer_forked
from niah.backends.transformers.length_dependent_rope import LengthDependentRope
from niah.backends.transformers.method import Running
from niah.backends.transformers.packed import Question, View, answer_packed, room_needed
from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.checkpoint.yarn import in_force
from niah.engines.memory import usage_by_formula
from niah.errors import CellError
from niah.kv.identity import canonical
from niah.kv.memory.totals import stored_tokens
from niah.types import Answer, Failure, Prompt, Reply, Timing

if TYPE_CHECKING:
    from niah.backends.transformers.options import TransformersOptions


@dataclass
class _Context:
    """A processed context: its token ids, the cache that holds them, and the key of the rotary frequencies in it."""

    ids: np.ndarray[Any, np.dtype[np.int32]]
    cache: Any
    rope: tuple[int, ...] = ()


class HFSession:
    """Answers groups of prompts one at a time, in a separate thread so that the event loop stays responsive."""

    max_in_flight = 1

    def __init__(
        self, running: Running, info: ModelInfo, options: TransformersOptions, request: SessionRequest
    ) -> None:
        self._running, self._loaded = running, running.loaded
        self._info, self._options, self._request = info, options, request
        self._shape, self._kv = running.shape, running.kv
        self._chunk = options.prefill_chunk
        self._packs = options.pack and running.packs
        self._last: _Context | None = None
        self._stored: dict[str, Any] = {}
        self._rope = LengthDependentRope(self._loaded.model)
        self.decode_steps = 0
        # settings in force of the model itself
        self.notes: dict[str, Any] = {}
        # tokens of the newest answers by their prompt's hash
        self.outputs: dict[str, list[int]] = {}

    def release(self) -> None:
        self._last = None

    def effective(self) -> dict[str, Any]:
        loaded, stored = self._loaded, canonical(self._kv)
        parameter = next(loaded.model.parameters())
        return {
            "kv.granularity": stored["granularity"],
            "kv.group_size": stored["group_size"],
            "kv.scales": stored["scales"] if self._kv.is_quantized else None,
            "kv.residual": self._kv.residual,
            "kv.skip_layers": ",".join(map(str, self._kv.skip_layers)) or None,
            "kv.prefill_reads": stored["prefill_reads"],
            "kv.windows": ",".join(sorted({str(layer.window or "full") for layer in self._shape.layers})),
            "compute_dtype": str(parameter.dtype).removeprefix("torch."),
            "device": str(parameter.device),
            "attention": loaded.model.config.get_text_config()._attn_implementation,  # noqa: SLF001
            "prefill_chunk": self._chunk if self._kv.prefill_reads == "stored" else "whole context",
            "threads": self._running.threads,
            "prefix_reuse": self._request.reuse,
            **({"rope": rope} if (rope := in_force(loaded.model.config)) else {}),
            "questions": "packed" if self._packs else "forked",
            **({"rope_switches": ",".join(map(str, self._rope.switches))} if self._rope else {}),
            **self.notes,
            **self._stored,
        }

    async def answer(self, group: Sequence[Prompt]) -> list[Reply]:
        return await asyncio.to_thread(self.ask, list(group))

    def ask(self, group: list[Prompt]) -> list[Reply]:
        """As ``answer``, in this thread."""
        self.outputs = {}
        torch.set_num_threads(self._running.threads)
        try:
            with torch.inference_mode():
                return self._answer_by_length(group)
        except (torch.OutOfMemoryError, MemoryError) as err:
            return self._failed(group, "out_of_memory", str(err))
        except FloatingPointError as err:
            return self._failed(group, "not_finite", str(err))
        except RuntimeError as err:
            if _is_allocation_failure(err):
                return self._failed(group, "out_of_memory", str(err))
            self._last = None
            raise CellError("engine", f"the model failed: {type(err).__name__}: {err}") from err

    def _answer_by_length(self, group: list[Prompt]) -> list[Reply]:
        """Answer the prompts of one context together where their rotary frequencies are the same."""
        parts: dict[tuple[int, ...], list[int]] = {}
        for i, prompt in enumerate(group):
            parts.setdefault(self._rope.key(_whole(prompt)), []).append(i)
        replies: dict[int, Reply] = {}
        for key, numbers in parts.items():
            own = [group[i] for i in numbers]
            with self._rope.at(_whole(own[0])):
                replies |= dict(zip(numbers, self._answer_part(own, key), strict=True))
        return [replies[i] for i in range(len(group))]

    def _answer_part(self, group: list[Prompt], rope: tuple[int, ...]) -> list[Reply]:
        if self._last is not None and self._last.rope != rope:
            self._last = None  # its keys have other rotary frequencies
        if self._request.reuse and self._packs:
            return self._answer_together(group, rope)
        return [reply for prompt in group for reply in self._answer_alone(prompt, rope)]

    def _failed(self, group: list[Prompt], kind: str, message: str) -> list[Reply]:
        self._last = None  # a half-filled cache must not serve the next context
        return [Failure(kind, message.splitlines()[0][:300] if message else kind) for _ in group]

    def _answer_alone(self, prompt: Prompt, rope: tuple[int, ...]) -> list[Reply]:
        if not self._request.reuse:
            self._last = None
        questions = [self._question(prompt)]
        context, reused, prefill_s = self._context(prompt, room_needed(questions), rope)
        if self._request.reuse:
            self._last = context
            context = _Context(context.ids, self._running.fork(context.cache), rope)
        return self._ask([prompt], questions, context, reused, prefill_s)

    def _answer_together(self, group: list[Prompt], rope: tuple[int, ...]) -> list[Reply]:
        questions = [self._question(prompt) for prompt in group]
        context, reused, prefill_s = self._context(group[0], room_needed(questions), rope)
        replies = self._ask(group, questions, context, reused, prefill_s)
        self._keep(context, len(group[0].context))
        return replies

    def _keep(self, context: _Context, tokens: int) -> None:
        """Keep the context for the next group where its questions can be cropped."""
        self._last = None
        if self._running.can_crop_to(context.cache, tokens):
            self._crop(context, tokens)
            self._last = context

    def _crop(self, context: _Context, tokens: int) -> None:
        self._running.crop(context.cache, tokens)
        context.ids = context.ids[:tokens]

    def _question(self, prompt: Prompt) -> Question:
        decode = self._info.tokenizer.decode

        def finished(output: list[int]) -> str:
            return "stop" if self._request.is_complete(decode(output), prompt.case) else ""

        return Question(list(prompt.tail), list(prompt.gold), prompt.answer_budget, finished)

    def _context(self, prompt: Prompt, room: int, rope: tuple[int, ...]) -> tuple[_Context, int, float]:
        """The prompt's context, processed: (context, tokens reused, seconds of prefill)."""
        started = time.perf_counter()
        ids = np.frombuffer(prompt.context, dtype=np.int32)
        context, reused = self._common(ids)
        self._running.reserve(context.cache, len(ids), room)
        call = self._running.tokens_per_call(context.cache, len(ids), self._chunk)
        for start in range(reused, len(ids), call):
            piece = ids[start : start + call].tolist()
            self._running.prefill(context.cache, piece, start)
            self._request.on_tokens(len(piece))
        context.ids, context.rope = ids, rope
        return context, reused, time.perf_counter() - started

    def _common(self, ids: np.ndarray[Any, np.dtype[np.int32]]) -> tuple[_Context, int]:
        last = self._last
        if last is not None and self._request.reuse:
            shorter = min(len(ids), len(last.ids))
            differs = np.flatnonzero(ids[:shorter] != last.ids[:shorter])
            common = int(differs[0]) if len(differs) else shorter
            if self._running.can_go_on(last.cache, common, len(ids)):
                self._crop(last, common)
                self._request.on_tokens(common)
                return last, common
        self._last = None
        return _Context(ids[:0], self._running.cache()), 0

    def _ask(
        self, group: list[Prompt], questions: list[Question], context: _Context, reused: int, prefill_s: float
    ) -> list[Reply]:
        started = time.perf_counter()
        tokens = len(group[0].context)
        if self._running.packs:
            self._ask_packed(questions, context, tokens)
        else:
            (question,) = questions
            self.decode_steps += answer_forked(self._running, context.cache, question, tokens, self._loaded.ends)
        asked_s = time.perf_counter() - started
        self._stored = self._running.effective(context.cache)
        allocated = self._running.allocated_bytes(context.cache)
        share = 1 / len(group)
        whole_s = prefill_s + asked_s
        timings = [Timing(prefill_s * share, prefill_s + q.first_at - started, whole_s * share) for q in questions]
        return [
            self._reply(prompt, question, context, allocated, timings[i], cached=reused if i == 0 else tokens)
            for i, (prompt, question) in enumerate(zip(group, questions, strict=True))
        ]

    def _ask_packed(self, questions: list[Question], context: _Context, tokens: int) -> None:
        self._running.hold(context.cache)

        def forward(ids: list[int], positions: list[int], view: View, keep: list[int]) -> torch.Tensor:
            self.decode_steps += 1
            return self._running.step(context.cache, ids, positions, view, keep)

        answer_packed(forward, questions, tokens, self._loaded.ends, self._loaded.device)

    def _reply(
        self, prompt: Prompt, question: Question, context: _Context, allocated: int, timing: Timing, cached: int
    ) -> Answer:
        stored = stored_tokens(prompt.token_count, question.generated)
        usage = replace(
            usage_by_formula(self._shape, self._kv, stored, context_tokens=len(prompt.context)),
            logical_bytes=self._running.logical_bytes(context.cache, stored),
            allocated_bytes=allocated,
            source="measured_tensors",
        )
        self.outputs[prompt.sha256] = question.output
        return Answer(
            text=self._info.tokenizer.decode(question.output),
            stop=question.stop,
            prompt_tokens=prompt.token_count,
            output_tokens=question.generated,
            cached_tokens=cached,
            logprob=question.logprob,
            timing=timing,
            memory=usage,
        )


def _whole(prompt: Prompt) -> int:
    """Tokens of a prompt with its expected answer: the sequence whose log-probability is measured."""
    return len(prompt.context) + len(prompt.tail) + len(prompt.gold)


def _is_allocation_failure(err: RuntimeError) -> bool:
    message = str(err).lower()
    return "can't allocate memory" in message or "not enough memory" in message or "out of memory" in message
