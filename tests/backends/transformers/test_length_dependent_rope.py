"""Frequencies that depend on the length: every answer is turned as in one plain pass over its whole sequence."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Phi3Config, Phi3ForCausalLM

from niah.backends.transformers.length_dependent_rope import LengthDependentRope
from niah.backends.transformers.load import LoadedModel
from niah.backends.transformers.method import Running, Setting
from niah.backends.transformers.methods.ring import Ring
from niah.backends.transformers.options import TransformersOptions
from niah.backends.transformers.session import HFSession
from niah.engines.base import ModelInfo, SessionRequest
from niah.errors import BackendUnavailable
from niah.kv.config import KVConfig, Placement
from niah.kv.formats import Plain
from niah.prompts.tokens import COMPLETION, WordTokenizer
from niah.types import Answer, Case, Prompt
from tests.helpers import tiny_models

SWITCH = 64
FP32 = KVConfig("fp32", Plain("fp32"), Plain("fp32"))


def _config(kind: type, rope: dict[str, Any]) -> Any:
    return kind(
        vocab_size=tiny_models.VOCABULARY,
        hidden_size=96,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        original_max_position_embeddings=SWITCH,
        rope_parameters={"rope_theta": 1e4, **rope},
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )


def longrope() -> LoadedModel:
    half = 96 // 4 // 2
    rope = {"rope_type": "longrope", "factor": 8.0, "original_max_position_embeddings": SWITCH}
    rope |= {"short_factor": [1.0] * half, "long_factor": [1.0 + 3 * i for i in range(half)]}
    return tiny_models.made_ready(Phi3ForCausalLM, _config(Phi3Config, rope))


def dynamic() -> LoadedModel:
    config = _config(LlamaConfig, {"rope_type": "dynamic", "factor": 4.0})
    config.max_position_embeddings = SWITCH
    return tiny_models.made_ready(LlamaForCausalLM, config)


KINDS = {"longrope": longrope, "dynamic": dynamic}


def _ids(count: int, seed: int) -> list[int]:
    return torch.randint(3, tiny_models.VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def _prompts(context: list[int], tails: tuple[int, ...] = (4, 9, 15)) -> list[Prompt]:
    case = Case(0.5, (), "", "", "", ("x",), "", (), "exact")
    shared = array("i", context)
    return [
        Prompt(shared, array("i", _ids(size, size)), tuple(_ids(3, size + 50)), 3, case, 0.5, (), f"{size}", "key")
        for size in tails
    ]


def _session(loaded: LoadedModel, *, reuse: bool, chunk: int = 16) -> HFSession:
    shape = tiny_models.shape_of(loaded)
    info = ModelInfo("tiny", "", "", WordTokenizer(), COMPLETION, shape=replace(shape, context_tokens=512))
    request = SessionRequest(FP32, 512, reuse=reuse, is_complete=lambda *_: False)
    running = Running(Setting(loaded, FP32, shape, threads=1))
    return HFSession(running, info, TransformersOptions(prefill_chunk=chunk, threads=1), request)


def _plain(make: Any, prompt: Prompt) -> float:
    """In a model of its own, which has seen nothing before: dynamic embeddings remember the longest sequence."""
    model = make().model
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([[*prompt.ids(), *prompt.gold]]), use_cache=False).logits[0, -4:-1]
    return float(logits.float().log_softmax(-1).gather(1, torch.tensor(prompt.gold)[:, None]).sum())


def _logprobs(session: HFSession, prompts: list[Prompt]) -> list[float | None]:
    replies = session.ask(prompts)
    assert all(isinstance(reply, Answer) for reply in replies), replies
    return [reply.logprob for reply in replies if isinstance(reply, Answer)]


@pytest.mark.parametrize("reuse", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_each_length_equals_a_plain_pass(kind: str, reuse: bool) -> None:
    """Below the switch, across it (one question on each side), behind it, and below it again from the same cache."""
    session = _session(KINDS[kind](), reuse=reuse)
    ids = _ids(200, 1)
    for tokens in (30, 55, 64, 100, 200, 40):
        prompts = _prompts(ids[:tokens])
        expected = [pytest.approx(_plain(KINDS[kind], prompt), abs=1e-3) for prompt in prompts]
        assert _logprobs(session, prompts) == expected, tokens


@pytest.mark.parametrize("kind", KINDS)
def test_the_two_sides_differ(kind: str) -> None:
    """Otherwise the test above could not fail."""
    loaded = KINDS[kind]()
    rope = LengthDependentRope(loaded.model)
    prompt = _prompts(_ids(100, 1))[0]
    with rope.at(SWITCH):
        # a sequence of 100 turned by the frequencies of a short one
        with torch.inference_mode():
            logits = loaded.model(input_ids=torch.tensor([[*prompt.ids(), *prompt.gold]])).logits[0, -4:-1]
        short = float(logits.log_softmax(-1).gather(1, torch.tensor(prompt.gold)[:, None]).sum())
    assert abs(short - _plain(KINDS[kind], prompt)) > 0.01


def test_keys_say_which_sequences_are_turned_alike() -> None:
    long, growing = LengthDependentRope(longrope().model), LengthDependentRope(dynamic().model)
    assert long.switches == growing.switches == (SWITCH,)
    assert long.key(64) != long.key(65) == long.key(500)
    assert growing.key(10) == growing.key(64) != growing.key(65) != growing.key(66)


def test_a_model_of_fixed_frequencies_is_left_alone() -> None:
    rope = LengthDependentRope(tiny_models.llama().model)
    assert not rope
    assert rope.key(10) == rope.key(100_000)


def test_the_embedding_is_as_before_afterwards() -> None:
    loaded = longrope()
    rope = LengthDependentRope(loaded.model)
    prompt = _prompts(_ids(100, 1))[0]
    before = _plain(longrope, prompt)
    with pytest.raises(RuntimeError, match="stop"), rope.at(10):
        raise RuntimeError("stop")
    with torch.inference_mode():
        logits = loaded.model(input_ids=torch.tensor([[*prompt.ids(), *prompt.gold]])).logits[0, -4:-1]
    after = float(logits.log_softmax(-1).gather(1, torch.tensor(prompt.gold)[:, None]).sum())
    assert after == pytest.approx(before, abs=1e-5)


def test_a_ring_refuses_them() -> None:
    """Its ranks see a part of the sequence each, and would be turned by the frequencies of that part."""
    loaded = longrope()
    ring = KVConfig("ring(2)", placement=Placement(context_parallel=2))
    with pytest.raises(BackendUnavailable, match="depend on the length"):
        Ring(Setting(loaded, ring, tiny_models.shape_of(loaded), threads=1))
