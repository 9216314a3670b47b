"""llama.cpp's cache types: bytes per block as in ggml, by setting and by model, and what cannot be asked."""

from __future__ import annotations

import pytest

from niah.errors import ConfigError
from niah.kv.formats import Block
from niah.kv.grammar import parse_kv, parse_one
from niah.kv.memory.formula_text import formula_text
from niah.kv.memory.totals import MIB, kv_bytes, reference_bytes
from niah.models.known import builtin_shape
from niah.models.shape import LayerShape, ModelShape

# sizeof(block_…) in ggml/src/ggml-common.h, QK = 32 in all of them
BLOCKS = {"q8_0": 34, "q5_1": 24, "q5_0": 22, "q4_1": 20, "q4_0": 18, "iq4_nl": 18}
SMOLLM2 = builtin_shape("smollm2-135m")


@pytest.mark.parametrize(("dtype", "size"), BLOCKS.items())
def test_bytes_of_a_block_and_of_a_head(dtype: str, size: int) -> None:
    assert Block(dtype).block_bytes == size
    layer = LayerShape("full", 1, 128, 128)
    toy = ModelShape("toy", (layer,), heads=1, hidden_size=128)
    assert kv_bytes(toy, parse_one(dtype), 7) == 7 * 2 * 4 * size
    half = kv_bytes(toy, parse_one(f"llama(v={dtype})"), 7)
    assert half == 7 * (128 * 2 + 4 * size), "keys in 16 bit, values in blocks"


@pytest.mark.parametrize(
    ("kv", "mib"), [("f16", 180), ("bf16", 180), ("q8_0", 95.625), ("q4_0", 50.625), ("q8_0(v=q4_0)", 73.125)]
)
def test_smollm2_at_8192_cells(kv: str, mib: float) -> None:
    """The sizes that llama.cpp's own log prints for 8,192 cells."""
    assert kv_bytes(SMOLLM2, parse_one(kv), 8192) / MIB == mib


def test_names() -> None:
    names = [kv.name for kv in parse_kv("f16,Q8_0,q8_0(v=q4_0),llama,llama(k=q8_0,v=f16),llama(q8_0,q8_0)")]
    assert names == ["fp16", "q8_0", "q8_0(v=q4_0)", "llama", "llama(k=q8_0,v=f16)", "llama(k=q8_0,v=q8_0)"]
    mixed = parse_one("llama(k=q8_0,v=q4_1)")
    assert (mixed.keys, mixed.values) == (Block("q8_0"), Block("q4_1"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("llama(k=q8_1)", "no cache of type 'q8_1'. Did you mean 'q8_0'?"),
        ("q8_0(k=q4_0)", "no argument 'k'"),
        ("q8_0(v=)", "no cache of type ''"),
        ("q6_0", "no KV setting named 'q6_0'. Did you mean"),
    ],
)
def test_wrong_types(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as said:
        parse_one(text)
    assert sentence in str(said.value)


def test_heads_that_blocks_do_not_divide() -> None:
    toy = ModelShape("toy", (LayerShape("full", 2, 80, 80),), heads=2, hidden_size=160)
    with pytest.raises(ConfigError, match="80 = 2 × 32 \\+ 16"):
        kv_bytes(toy, parse_one("q4_0"), 1)


def test_formula_in_words() -> None:
    text = formula_text(SMOLLM2, parse_one("q8_0(v=q4_0)"))
    assert text == "30 layers × 3 KV heads × (K 64 B + 4 B scales + V 32 B + 4 B scales) × T = 9,360 B × T"
    assert kv_bytes(SMOLLM2, parse_one("q4_0"), 100) * 32 == reference_bytes(SMOLLM2, 100) * 9
