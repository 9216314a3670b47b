"""Canaries: a few short questions before the grid, so that a KV setting that answers with garbage is marked broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from niah import registry
from niah.config import GridConfig, Named, RunConfig
from niah.engines.base import ModelInfo
from niah.errors import ConfigError
from niah.prompts.task import ContextLayout
from niah.runner.prompt_builder import Group, PromptBuilder
from niah.types import Answer, Prompt, Reply

CANARY_LENGTH = 256
CANARY_DEPTHS = (0.0, 0.35, 0.7, 1.0)
# of the canaries that the reference answers, a setting must answer this share
SURVIVE_SHARE = 0.5
# the reference must answer this share, or the canary says nothing about the others
TRUST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class CanaryResult:
    """``state`` is ``passed``, ``broken`` or ``inconclusive`` (the model itself cannot do it)."""

    state: str
    correct: int
    asked: int
    why: str
    right: tuple[bool | None, ...] = ()
    logprob: float | None = None
    answers: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "passed": self.state == "passed"}

    @staticmethod
    def from_json(data: dict[str, Any]) -> CanaryResult:
        fields = {k: data[k] for k in ("state", "correct", "asked", "why", "logprob") if k in data}
        return CanaryResult(**fields, right=tuple(data.get("right", ())), answers=tuple(data.get("answers", ())))


def canary_prompts(config: RunConfig, info: ModelInfo) -> list[Prompt]:
    """Four keyed needles in 256 tokens of generated prose: the easiest form of what the run asks."""
    easy = config.model_copy(
        update={
            "task": Named(name="multikey", options={"keys": len(CANARY_DEPTHS)}),
            "haystack": Named(name="chronicle"),
            "grid": GridConfig(lengths=str(CANARY_LENGTH), seed=config.grid.seed),
        }
    )
    length = CANARY_LENGTH
    while True:
        try:
            builder = PromptBuilder(easy, info, length)
            return builder.prompts(Group(length, 0, 0, ContextLayout(CANARY_DEPTHS)))
        except ConfigError:
            # a long chat template or a wordy tokenizer needs more room
            if length >= 8 * CANARY_LENGTH or (info.context_tokens or length) < 2 * length:
                raise
            length *= 2


def judge_replies(prompts: Sequence[Prompt], replies: Sequence[Reply], reference: CanaryResult | None) -> CanaryResult:
    """Judge the replies to canaries, against the reference's or on their own."""
    right = tuple(_is_right(prompt, reply) for prompt, reply in zip(prompts, replies, strict=True))
    answers = tuple(reply.text if isinstance(reply, Answer) else f"[{reply.kind}]" for reply in replies)
    logprobs = [r.logprob for r in replies if isinstance(r, Answer) and r.logprob is not None]
    mean = sum(logprobs) / len(logprobs) if logprobs else None
    state, why = judge(right, reference.right if reference and reference.right else None)
    return CanaryResult(state, sum(map(bool, right)), len(right), why, right, mean, answers)


def _is_right(prompt: Prompt, reply: Reply) -> bool | None:
    if not isinstance(reply, Answer):
        return None
    return bool(registry.load("scoring", prompt.case.scorer).score(reply.text, prompt.case).correct)


def judge(right: Sequence[bool | None], reference: Sequence[bool | None] | None) -> tuple[str, str]:
    """State and reason from which canaries were right; None marks one that failed and says nothing."""
    asked = [i for i, ok in enumerate(right) if ok is not None]
    correct = sum(bool(right[i]) for i in asked)
    if not asked:
        return "broken", f"all {len(right)} canaries failed"
    if reference is None:
        if correct >= TRUST_SHARE * len(asked):
            return "passed", f"{correct} of {len(asked)} canaries right"
        return "inconclusive", f"{correct} of {len(asked)} canaries right and no reference to compare with"
    known = [i for i in asked if reference[i]]
    if len(known) < TRUST_SHARE * len(right):
        failed = len(right) - len(asked)
        why = f"the reference itself answers only {sum(map(bool, reference))} of {len(right)} canaries"
        return "inconclusive", f"{why}, and {failed} failed here" if failed else why
    kept = sum(bool(right[i]) for i in known)
    if kept < SURVIVE_SHARE * len(known):
        return "broken", f"{kept} of the {len(known)} canaries that the reference answers"
    return "passed", f"{kept} of the {len(known)} canaries that the reference answers"
