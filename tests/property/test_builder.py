from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from niah.prompts.builder import build_context, context_text, min_length
from niah.prompts.segments import TRAIL, Segmented, count_whole, tokenize
from niah.prompts.tokens import COMPLETION, Template
from niah.tasks import multikey
from niah.types import Placement
from tests.helpers.small_tokenizers import KINDS, Village, tokenizer

CHAT = Template("chat", "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n")
ANSWER_TOKENS = 20


@cache
def village(kind: str, every_line: bool) -> Segmented:
    return tokenize(Village(every_line=every_line), 0, tokenizer(kind), 8000)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    every_line=st.booleans(),
    template=st.sampled_from([CHAT, COMPLETION]),
    depths=st.lists(st.integers(0, 1000).map(lambda n: n / 1000), min_size=1, max_size=12, unique=True),
    keys=st.integers(1, 12),
    values=st.sampled_from(["number", "word", "uuid"]),
    extra=st.integers(0, 4000),
    seed=st.integers(0, 2**32),
)
def test_any_grid_is_built_exactly(
    kind: str,
    every_line: bool,
    template: Template,
    depths: list[float],
    keys: int,
    values: str,
    extra: int,
    seed: int,
) -> None:
    tok, made = tokenizer(kind), village(kind, every_line)
    options = multikey.MultikeyOptions.model_validate({"keys": keys, "values": values})
    for layout in multikey.layouts(options, depths):
        cases = multikey.make(options, seed, layout, made.collides(8000))
        length = min_length(tok, template, made, cases, ANSWER_TOKENS) + extra
        prompts = build_context(tok, template, made, cases, length, ANSWER_TOKENS)
        assert [prompt.case.depth for prompt in prompts] == list(layout.asked)
        for prompt in prompts:
            assert prompt.token_count + prompt.answer_budget == length
            assert prompt.answer_budget >= ANSWER_TOKENS
            assert prompt.context is prompts[0].context
        text = context_text(prompts[0], tok)
        places = [text.index(needle.text) for needle in cases[0].needles]
        assert places == sorted(places)
        for needle in cases[0].needles:
            assert text.count(needle.text) == 1
            assert count_whole(text, needle.value) == 1
        head = template.prefix + cases[0].instruction + ("\n\n" if made.kinds[0] == TRAIL else "")
        _check_depths(made, prompts[0].placements, len(prompts[0].context) - len(tok.encode(head)))


def _check_depths(made: Segmented, placements: tuple[Placement, ...], after_head_tokens: int) -> None:
    assert [p.token_offset for p in placements] == sorted(p.token_offset for p in placements)
    haystack_tokens = after_head_tokens - sum(p.token_count for p in placements)
    longest = int(np.diff(made.offsets).max())
    for place in placements:
        at = place.depth_real * haystack_tokens
        assert abs(at - round(at)) < 1e-6
        # the nearest boundary is at most half a sentence away
        assert abs(at - place.depth * haystack_tokens) <= longest / 2
