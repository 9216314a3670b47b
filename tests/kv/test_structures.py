"""Presets that change what is kept, or where: how they are written, named and refused."""

from __future__ import annotations

import re

import pytest

from niah.errors import ConfigError
from niah.kv.grammar import parse_one
from niah.kv.memory.totals import kv_bytes
from niah.models.known import builtin_shape


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("window(512)", "window(size=512)"),
        ("streaming(sinks=4,window=512)", "streaming(window=512)"),
        ("streaming(8,512)", "streaming(sinks=8,window=512)"),
        ("streaming(window=512,positions=original)", "streaming(window=512,positions=original)"),
        ("gqa(2)", "gqa(kv_heads=2)"),
        ("mqa", "mqa"),
        ("infini(segment=512)", "infini(segment=512)"),
        ("infini(512,gate=0.25,update=linear)", "infini(segment=512,gate=0.25,update=linear)"),
        ("ring(4)", "ring(ranks=4)"),
        ("offload", "offload"),
    ],
)
def test_names_are_canonical_and_settings_survive_json(text: str, name: str) -> None:
    kv = parse_one(text)
    assert kv.name == name
    assert parse_one(name) == kv


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("window", "needs size"),
        ("window(0)", "window is 0"),
        ("window(many)", "window is 'many'"),
        ("streaming(sinks=4)", "needs window"),
        ("streaming(window=512,positions=middle)", "give one of in_cache, original"),
        ("gqa", "needs kv_heads"),
        ("gqa(0)", "kv_heads is 0"),
        ("infini(512,gate=1.5)", "gate is 1.5; give a share from 0"),
        ("infini(512,update=square)", "give one of delta, linear"),
        ("ring(1)", "a ring needs at least 2 ranks, not 1"),
        ("ring(two)", "context_parallel is 'two'"),
        ("infini(512)+window(64)", "drop the window"),
    ],
)
def test_wrong_arguments_are_told(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)):
        parse_one(text)


def test_bytes_of_a_llama_2_70b_at_128k() -> None:
    """Known figures: 40 GiB with its 8 KV heads, an eighth of that with one; constant for windows and memories."""
    shape, tokens, gib = builtin_shape("llama-2-70b"), 131_072, 1024**3
    assert kv_bytes(shape, parse_one("bf16"), tokens) == kv_bytes(shape, parse_one("ring(8)"), tokens) == 40 * gib
    assert kv_bytes(shape, parse_one("mqa"), tokens) == 5 * gib
    per_token = 2 * 80 * 8 * 128 * 2
    assert kv_bytes(shape, parse_one("streaming(window=508)"), tokens) == 512 * per_token
    memory = 80 * 8 * (128 * 128 + 128) * 4
    assert kv_bytes(shape, parse_one("infini(2048)"), tokens) == memory + 2048 * per_token
