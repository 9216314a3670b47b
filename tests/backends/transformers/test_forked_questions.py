"""Questions that are asked one by one, each in a fork of the context's cache (``backend.pack=false``)."""

from __future__ import annotations

from array import array

import pytest
import torch

from niah.backends.transformers.method import Setting, open_running
from niah.backends.transformers.options import TransformersOptions
from niah.backends.transformers.session import HFSession
from niah.engines.base import ModelInfo, SessionRequest
from niah.kv.config import KVConfig, Window
from niah.kv.formats import Plain
from niah.prompts.tokens import COMPLETION, WordTokenizer
from niah.types import Answer, Case, Prompt
from tests.helpers import tiny_models
from tests.helpers.known import known

FP32 = KVConfig("fp32", Plain("fp32"), Plain("fp32"))
WINDOW = KVConfig("window", Plain("fp32"), Plain("fp32"), tokens=Window(26))
SINKS = KVConfig("streaming", Plain("fp32"), Plain("fp32"), tokens=Window(26, 4))


def _ids(count: int, seed: int) -> list[int]:
    return torch.randint(3, tiny_models.VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def _prompts(context: list[int]) -> list[Prompt]:
    case = Case(0.5, (), "", "", "", ("x",), "", (), "exact")
    shared = array("i", context)
    return [
        Prompt(shared, array("i", _ids(size, size)), tuple(_ids(3, size + 50)), 3, case, 0.5, (), f"{size}", "key")
        for size in (4, 9, 15)
    ]


def _answers(kind: str, kv: KVConfig, *, packed: bool) -> list[tuple[float | None, int]]:
    """Of three questions behind each context: one that a window holds, longer ones, and the start of one again."""
    loaded = tiny_models.ALL[kind]()
    shape = tiny_models.shape_of(loaded)
    info = ModelInfo("tiny", "", "", WordTokenizer(), COMPLETION, shape=shape)
    options = TransformersOptions(prefill_chunk=16, threads=1, pack=packed)
    found = []
    with open_running(Setting(loaded, kv, shape, threads=1)) as running:
        session = HFSession(running, info, options, SessionRequest(kv, 512, reuse=True, is_complete=lambda *_: False))
        ids = _ids(120, 1)
        for tokens in (20, 60, 120, 50):
            for reply in session.ask(_prompts(ids[:tokens])):
                assert isinstance(reply, Answer), reply
                found.append((reply.logprob, known(reply.output_tokens)))
    return found


@pytest.mark.parametrize("kv", [WINDOW, SINKS], ids=lambda kv: kv.name)
def test_a_window_that_has_dropped_tokens_answers_several_questions(kv: KVConfig) -> None:
    expected = [(pytest.approx(value, abs=1e-3), count) for value, count in _answers("llama", kv, packed=True)]
    assert _answers("llama", kv, packed=False) == expected


@pytest.mark.parametrize("kind", ["mistral", "gemma3"])
def test_so_do_models_that_have_windows_of_their_own(kind: str) -> None:
    """The truth is one plain pass of the library over context, question and expected answer."""
    loaded = tiny_models.ALL[kind]()
    expected = []
    for tokens in (20, 60, 120, 50):
        for prompt in _prompts(_ids(120, 1)[:tokens]):
            with torch.inference_mode():
                ids = torch.tensor([[*prompt.ids(), *prompt.gold]])
                loaded.model.config._attn_implementation = "sdpa"
                scores = loaded.model(input_ids=ids, use_cache=False).logits[0, -4:-1].float().log_softmax(-1)
            gold = torch.tensor(prompt.gold)[:, None]
            expected.append(pytest.approx(float(scores.gather(1, gold).sum()), abs=1e-3))
    assert [value for value, _ in _answers(kind, FP32, packed=False)] == expected
