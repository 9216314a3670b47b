"""Packed questions must give what plain, separate decoding gives: same tokens, same log-probabilities."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import DynamicCache

from niah.backends.transformers.cache.build import build_cache
from niah.backends.transformers.cache.layer import StoredLayer
from niah.backends.transformers.load import LoadedModel
from niah.backends.transformers.packed import Question, answer_packed, room_needed
from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from tests.helpers import tiny_models

FP32 = KVConfig("fp32", Plain("fp32"), Plain("fp32"))


def _questions(seed: int, golds: int = 4) -> list[Question]:
    generator = torch.Generator().manual_seed(seed)

    def draw(count: int) -> list[int]:
        return torch.randint(3, tiny_models.VOCABULARY, (count,), generator=generator).tolist()

    return [Question(draw(size), draw(golds), 8, lambda _: "") for size in (5, 1, 9, 3)]


def _context(length: int) -> list[int]:
    return torch.randint(3, tiny_models.VOCABULARY, (length,), generator=torch.Generator().manual_seed(1)).tolist()


def _packed(loaded: LoadedModel, context: list[int], questions: list[Question], chunk: int = 16) -> list[StoredLayer]:
    cache = build_cache(FP32, tiny_models.shape_of(loaded))
    with torch.inference_mode():
        for start in range(0, len(context), chunk):
            piece = context[start : start + chunk]
            loaded.step(piece, list(range(start, start + len(piece))), cache)
        for layer in cache.layers:
            layer.hold = True
            layer.reserve_slots = len(context) + room_needed(questions)
        answer_packed(
            lambda ids, positions, mask, keep: loaded.step(ids, positions, cache, mask, keep),
            questions,
            len(context),
            loaded.ends,
            loaded.device,
        )
    return list(cache.layers)


def _alone(loaded: LoadedModel, ids: list[int], steps: int) -> list[int]:
    """Greedy decoding of one prompt with the library's own cache and masks."""
    out: list[int] = []
    with torch.inference_mode():
        cache = DynamicCache(config=loaded.model.config)
        feed = torch.tensor([ids])
        for _ in range(steps):
            logits = loaded.model(input_ids=feed, **{loaded.cache_argument: cache}).logits[0, -1]
            token = int(logits.argmax())
            if token in loaded.ends:
                break
            out.append(token)
            feed = torch.tensor([[token]])
    return out


def _gold_logprob(loaded: LoadedModel, ids: list[int], gold: list[int]) -> float:
    with torch.inference_mode():
        logits = loaded.model(input_ids=torch.tensor([[*ids, *gold]])).logits[0, len(ids) - 1 : -1]
    return float(logits.float().log_softmax(-1).gather(1, torch.tensor(gold)[:, None]).sum())


@pytest.mark.parametrize("kind", sorted(tiny_models.ALL))
@pytest.mark.parametrize("length", [1, 23, 24, 25, 70])
def test_packed_equals_separate_decoding(kind: str, length: int) -> None:
    loaded = tiny_models.ALL[kind]()
    context, questions = _context(length), _questions(length)
    _packed(loaded, context, questions)
    for question in questions:
        ids = [*context, *question.tail]
        assert question.output == _alone(loaded, ids, question.budget)
        assert question.logprob == pytest.approx(_gold_logprob(loaded, ids, question.gold), abs=1e-3)


def test_draft_does_not_change_the_answer() -> None:
    """The expected answer as a draft, right, half right or wrong, leaves greedy output as it is."""
    loaded, context = tiny_models.llama(), _context(40)
    plain = _questions(3)
    _packed(loaded, context, plain)
    outputs = [q.output for q in plain]
    assert len({tuple(o) for o in outputs}) > 1, "a model that always says the same would prove nothing"
    for kept in (0, 2, 6):
        again = [Question(q.tail, [*q.output[:kept], 5, 6][:6], 8, lambda _: "") for q in plain]
        _packed(loaded, context, again)
        assert [q.output for q in again] == outputs


def test_right_draft_saves_steps() -> None:
    loaded, context = tiny_models.llama(), _context(40)
    plain = _questions(3)
    _packed(loaded, context, plain)
    drafted = [Question(q.tail, q.output[:7], 8, lambda _: "") for q in plain]
    _packed(loaded, context, drafted)
    assert all(q.steps == 1 for q in drafted)
    assert all(q.steps >= 7 for q in plain)


def test_stops_when_complete_and_at_budget() -> None:
    loaded, context = tiny_models.llama(), _context(30)
    early = [Question(q.tail, q.gold, 8, lambda out: "stop" if len(out) == 3 else "") for q in _questions(5)]
    _packed(loaded, context, early)
    assert {(q.stop, len(q.output)) for q in early} == {("stop", 3)}
    late = _questions(5)
    _packed(loaded, context, late)
    assert {(q.stop, len(q.output)) for q in late} <= {("length", 8), ("end", 0)}


def test_no_question_sees_another() -> None:
    """Leaving out or changing the other questions does not move a log-probability."""
    loaded, context = tiny_models.gemma3(), _context(33)
    all_four, alone = _questions(9), _questions(9)
    _packed(loaded, context, all_four)
    for i, question in enumerate(alone):
        _packed(loaded, context, [question])
        assert question.logprob == pytest.approx(all_four[i].logprob, abs=1e-4)
        assert question.output == all_four[i].output


def test_logits_that_are_not_finite_are_an_error() -> None:
    loaded, context = tiny_models.llama(), _context(8)
    with torch.no_grad():
        loaded.model.lm_head.weight.fill_(math.nan)
    with pytest.raises(FloatingPointError, match="not finite"):
        _packed(loaded, context, _questions(1))
