"""The ladder of combined savings: LLaMA-2-70B at 128k against figures worked out by hand, and what cannot be had."""

from __future__ import annotations

import pytest

from niah.errors import ConfigError
from niah.kv.grammar import parse_kv, parse_one
from niah.kv.ladder import ladder
from niah.kv.memory.table import memory_rows
from niah.kv.memory.totals import kv_bytes, paged_bytes
from niah.models.known import builtin_shape
from tests.helpers.known import known

K128 = 131_072
STEPS = "int8,int8+paged,int4+paged"


def test_llama_2_70b_at_128k() -> None:
    """80 layers; 64 heads of 128 as MHA, 8 as the model has them; int8 132 of 256 bytes, int4 80 of 256."""
    steps = ladder(builtin_shape("llama-2-70b"), K128, parse_kv(STEPS))
    layers_tokens = 80 * K128
    mha = layers_tokens * 2 * 64 * 128 * 2
    assert mha == 343_597_383_680
    assert [step.total_bytes for step in steps] == [
        mha,
        mha // 8,
        layers_tokens * 8 * 2 * 132,
        layers_tokens * 8 * 2 * 132,
        layers_tokens * 8 * 2 * 80,
    ]
    assert [step.kv for step in steps] == [None, "fp16", "int8", "int8+paged", "int4+paged"]
    assert steps[1].name == "GQA-8, 16 bit"
    assert [step.of_start for step in steps] == [1.0, 0.125, 0.125 * 132 / 256, 0.125 * 132 / 256, 0.125 * 80 / 256]
    assert [step.of_previous for step in steps] == [None, 0.125, 132 / 256, 1.0, pytest.approx(80 / 132)]
    assert "0 slots a sequence are unfilled here (0 B in all), never more than 15 (2.5 MB a sequence)" in steps[3].note


def test_unfilled_slots_of_blocks_are_counted_per_sequence() -> None:
    shape = builtin_shape("llama-2-70b")
    paged = parse_one("int8+paged(block_size=128)")
    assert kv_bytes(shape, paged, 1000) == kv_bytes(shape, parse_one("int8"), 1000)
    assert paged_bytes(shape, paged, 1000, batch=3) == 3 * kv_bytes(shape, paged, 1024)
    assert paged_bytes(shape, paged, 1024) == kv_bytes(shape, paged, 1024)
    assert paged_bytes(shape, parse_one("int8"), 1000) == kv_bytes(shape, paged, 1000)
    assert paged_bytes(shape, paged, 0) == 0
    (row,) = memory_rows(shape, [paged], [1000], gpu_bytes=10**15)
    assert (row.logical_bytes, row.allocated_bytes) == (168_960_000, 168_960 * 1024)
    assert row.formula.endswith("T rounded up to blocks of 128")
    step = ladder(shape, 1000, [paged], batch=3)[-1]
    assert step.total_bytes == 3 * known(row.allocated_bytes)
    assert "24 slots a sequence are unfilled here (12.2 MB in all), never more than 127" in step.note


def test_a_step_that_a_model_cannot_have_says_why_and_the_rest_goes_on() -> None:
    steps = ladder(builtin_shape("deepseek-v3"), 1000, parse_kv("int8,bf16"))
    assert steps[1].name == "MLA, 16 bit"
    assert steps[2].total_bytes is None
    assert steps[2].of_previous is None
    assert steps[2].note.startswith("'deepseek-v3' stores an MLA latent")
    assert steps[3].total_bytes == steps[1].total_bytes
    assert steps[3].of_previous == 1.0


def test_a_model_with_mha_starts_from_its_own_cache() -> None:
    steps = ladder(builtin_shape("llama-2-7b"), 1000, parse_kv("gqa(8),gqa(8)+int8"))
    assert [step.name for step in steps] == ["MHA, 16 bit", "gqa(kv_heads=8)", "gqa(kv_heads=8)+int8"]
    assert [step.of_previous for step in steps] == [None, 0.25, 132 / 256]


def test_nothing_stored_has_no_shares() -> None:
    assert ladder(builtin_shape("llama-2-70b"), 0, [])[1].of_start is None


def test_kivi_has_no_formula_where_windows_drop_tokens() -> None:
    gemma = builtin_shape("gemma-3-270m")
    with pytest.raises(ConfigError, match=r"use kivi4\+skip\(sliding_window\) or int4"):
        kv_bytes(gemma, parse_one("kivi4"), 1000)
    mixed = kv_bytes(gemma, parse_one("kivi4+skip(sliding_window)"), 1000)
    assert 15 * 512 * 2 * 256 * 2 < mixed < kv_bytes(gemma, parse_one("bf16"), 1000)
