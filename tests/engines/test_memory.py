"""The memory of an answer by formula, against sizes counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from niah.engines.memory import usage_by_formula
from niah.kv.config import KVConfig
from niah.kv.formats import Plain, TokenHead
from niah.models.shape import ModelShape
from niah.types import KVUsage

# 2 layers, 4 heads of 32 elements, of which 2 are stored
SHAPE = ModelShape.from_config(
    {
        "model_type": "llama",
        "num_hidden_layers": 2,
        "hidden_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
    },
    name="small",
)
TOKEN = 2 * 2 * (32 + 32)  # elements of one token
INT8 = KVConfig("int8", TokenHead("int8"), TokenHead("int8"))


@pytest.mark.parametrize(
    ("kv", "formula"),
    [
        (KVConfig("bf16"), 10 * TOKEN * 2),
        # a byte an element and 4 bytes of scale for each of 2 layers · 2 heads · keys and values
        (INT8, 10 * (TOKEN + 2 * 2 * 2 * 4)),
        (KVConfig("auto", Plain("auto"), Plain("auto")), None),
    ],
)
def test_bytes_by_hand(kv: KVConfig, formula: int | None) -> None:
    usage = usage_by_formula(SHAPE, kv, 10)
    assert usage == KVUsage(
        tokens=10, formula_bytes=formula, reference_bytes=10 * TOKEN * 2, naive_mha_bytes=10 * 2 * 2 * 128 * 2
    )


def test_what_follows_a_context_that_is_packed_at_its_end_stays_in_16_bit() -> None:
    packed, whole = 7 * (TOKEN + 32), 10 * (TOKEN + 32)
    raw = replace(INT8, prefill_reads="raw_chunk")
    assert usage_by_formula(SHAPE, raw, 10, context_tokens=7).formula_bytes == packed + 3 * TOKEN * 2
    assert usage_by_formula(SHAPE, INT8, 10, context_tokens=7).formula_bytes == whole


def test_without_a_shape_nothing_is_made_up() -> None:
    assert usage_by_formula(None, INT8, 10) == KVUsage(tokens=10)
