"""Bytes against reference figures that were computed apart from this code, and against arrays really packed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from niah.errors import ConfigError
from niah.kv.config import Infini, KVConfig, SkipLayer, Window
from niah.kv.formats import Grouped, KiviKeys, KiviValues, Plain, TokenHead
from niah.kv.grammar import parse_one
from niah.kv.memory.formula_text import formula_text, naive_note
from niah.kv.memory.table import memory_rows
from niah.kv.memory.totals import (
    GIB,
    fits,
    human_bytes,
    kv_bytes,
    naive_mha_bytes,
    parse_bytes,
    reference_bytes,
    stored_tokens,
    weights_bytes,
)
from niah.kv.vllm_formats import Nvfp4
from niah.models.known import builtin_shape
from niah.models.shape import LayerShape, ModelShape

K4, K32, K128 = 4096, 32_768, 131_072
BF16 = KVConfig("bf16")


def one_head(dim: int, layers: int = 1, kv_heads: int = 1, window: int | None = None) -> ModelShape:
    layer = LayerShape("full" if window is None else "window", kv_heads, dim, dim, window)
    return ModelShape("toy", (layer,) * layers, heads=kv_heads, hidden_size=dim * kv_heads)


def test_llama_2_70b_at_the_lengths_people_quote() -> None:
    llama = builtin_shape("llama-2-70b")
    assert kv_bytes(llama, parse_one("fp16"), K4) == 1_342_177_280
    assert kv_bytes(llama, parse_one("fp16"), K128) == 42_949_672_960 == 40 * GIB
    assert kv_bytes(llama, parse_one("fp16"), 128_000) == 41_943_040_000
    assert naive_mha_bytes(llama, K4) == 10_737_418_240
    assert naive_mha_bytes(llama, K128) == 343_597_383_680
    assert naive_mha_bytes(llama, K4, batch=4) == 40 * GIB


@pytest.mark.parametrize(
    ("name", "per_token", "gib_4k", "gib_32k", "gib_128k"),
    [
        ("qwen2.5-0.5b", 12_288, 48 / 1024, 384 / 1024, 1.5),
        ("smollm2-135m", 23_040, 90 / 1024, 720 / 1024, 2.8125),
        ("qwen3-0.6b", 114_688, 448 / 1024, 3.5, 14),
        ("llama-3.1-8b", 131_072, 0.5, 4, 16),
        ("qwen3-4b", 147_456, 0.5625, 4.5, 18),
        ("qwen3-8b", 147_456, 0.5625, 4.5, 18),
        ("gemma-3-270m", 18_432, 20_447_232 / GIB, 108_527_616 / GIB, 0.3823),
        ("gemma-3-1b", 26_624, 27 / 1024, 139 / 1024, 0.5107),
        ("gemma-3-4b", 139_264, 0.1914, 0.7383, 2.6133),
        ("gemma-3-12b", 393_216, 0.5625, 2.3125, 8.3125),
        ("gemma-3-27b", 507_904, 0.71875, 2.90625, 10.40625),
        ("gpt-oss-20b", 49_152, 0.0967, 0.7529, 3.0029),
        ("gpt-oss-120b", 73_728, 0.145, 1.1294, 4.5044),
        ("deepseek-v2-lite", 31_104, 0.1187, 0.9492, 3.7969),
        ("deepseek-v2", 69_120, 0.2637, 2.1094, 8.4375),
        ("deepseek-v3", 70_272, 0.2681, 2.1445, 8.5781),
        ("starcoder-15b", 20_480, 0.078125, 0.625, 2.5),
    ],
)
def test_reference_table(name: str, per_token: int, gib_4k: float, gib_32k: float, gib_128k: float) -> None:
    shape = builtin_shape(name)
    assert reference_bytes(shape, 1) == per_token
    found = [reference_bytes(shape, length) / GIB for length in (K4, K32, K128)]
    assert found == pytest.approx([gib_4k, gib_32k, gib_128k], rel=1e-3)


def test_llama_4_chunks() -> None:
    layers = tuple(
        LayerShape("full", 8, 128, 128) if index % 4 == 3 else LayerShape("chunked", 8, 128, 128, 8192)
        for index in range(48)
    )
    llama4 = ModelShape("llama-4", layers, heads=40, hidden_size=5120)
    assert [reference_bytes(llama4, length) / GIB for length in (K4, K32, K128)] == [0.75, 2.625, 7.125]


def kivi(bits: int, residual: int = 128) -> KVConfig:
    return KVConfig("kivi", KiviKeys(f"int{bits}", 32), KiviValues(f"int{bits}", 32), residual=residual)


K8V4 = KVConfig("k8v4", TokenHead("int8"), Grouped("int4", 64))


def _whole(name: str) -> KVConfig:
    """The preset without the layers that it leaves out."""
    return replace(parse_one(name), skip_layers=())


NVFP4 = KVConfig("nvfp4", Nvfp4("nvfp4"), Nvfp4("nvfp4"))
QUANTO2 = KVConfig("quanto2", Grouped("int2", 64), Grouped("int2", 64))
INT4_TOKEN = KVConfig("int4t", TokenHead("int4"), TokenHead("int4"))
GROUP_64 = parse_one("int4(group_size=64)")


@pytest.mark.parametrize(
    ("kv", "at_64", "at_128", "at_256"),
    [
        (BF16, 256, 512, 1024),
        (parse_one("auto"), 256, 512, 1024),
        (KVConfig("fp32", Plain("fp32"), Plain("fp32")), 512, 1024, 2048),
        (parse_one("fp8"), 128, 256, 512),
        (parse_one("fp8_e5m2"), 128, 256, 512),
        (parse_one("fp8(scales=checkpoint)"), 128, 256, 512),
        (parse_one("fp8(scales=dynamic)"), 136, 264, 520),
        (parse_one("int8"), 136, 264, 520),
        (INT4_TOKEN, 72, 136, 264),
        (parse_one("int4"), 80, 160, 320),
        (GROUP_64, 72, 144, 288),
        (QUANTO2, 40, 80, 160),
        (NVFP4, 72, 144, 288),
        (parse_one("nvfp4"), 72, 144, 288),
        (parse_one("k8v4(group_size=64)"), 104, 204, 404),
        (_whole("tq-k8v4"), 100, 196, 388),
        (_whole("tq-4bit"), 70, 134, 262),
        (_whole("tq-k3v4"), 62, 118, 230),
        (_whole("tq-3bit"), 54, 102, 198),
        (K8V4, 104, 204, 404),
    ],
    ids=lambda value: value.name if isinstance(value, KVConfig) else str(value),
)
def test_bytes_per_token_and_head(kv: KVConfig, at_64: int, at_128: int, at_256: int) -> None:
    assert [kv_bytes(one_head(dim), kv, 1) for dim in (64, 128, 256)] == [at_64, at_128, at_256]
    left = len(kv.keys.layers_in_16_bit(3))
    assert (
        kv_bytes(one_head(128, layers=3, kv_heads=2), kv, 7, batch=5) == (at_128 * (3 - left) + 512 * left) * 2 * 7 * 5
    )


@pytest.mark.parametrize(("name", "at_128"), [("quanto4", 144), ("quanto2", 80), ("hqq4", 144), ("hqq8", 272)])
def test_what_packages_pack_in_whole_rows(name: str, at_128: int) -> None:
    assert kv_bytes(one_head(128, layers=3, kv_heads=2), parse_one(name), 8) == at_128 * 3 * 2 * 8
    # without a multiple of the rows in a byte there is no figure per token
    assert formula_text(one_head(64), parse_one(name)).endswith("× T")


def test_odd_rows_are_padded_by_quanto_and_left_out_by_hqq() -> None:
    # 3 heads of 64 are 3 groups a token: 21 rows at 7 tokens
    smol = one_head(64, kv_heads=3)
    assert kv_bytes(smol, parse_one("quanto4"), 7) == 2 * (11 * 64 + 21 * 4)
    assert kv_bytes(smol, parse_one("quanto2"), 7) == 2 * (6 * 64 + 21 * 4)
    assert kv_bytes(smol, parse_one("hqq4"), 7) == 2 * (9 * 64 + 18 * 4 + 3 * 128)
    assert kv_bytes(smol, parse_one("hqq8"), 7) == 2 * (21 * 64 + 21 * 4)
    assert kv_bytes(smol, parse_one("hqq4"), 1) == 2 * 3 * 128


def test_turboquant_leaves_the_first_and_last_two_layers_in_16_bit() -> None:
    assert kv_bytes(one_head(128, layers=10), parse_one("tq-4bit"), 5) == 5 * (6 * 134 + 4 * 512)


def test_skipped_layers_keep_the_models_own_type() -> None:
    shape = one_head(64, layers=4)
    assert kv_bytes(shape, parse_one("int8+skip(0,-1)"), 9) == 9 * (2 * 136 + 2 * 256)
    everything = parse_one("kivi2+skip(0,1,2,3)")
    assert kv_bytes(shape, everything, 300) == reference_bytes(shape, 300)


@pytest.mark.parametrize(("bits", "asymptotic"), [(4, 160), (2, 96)])
def test_kivi_comes_close_to_bits_plus_one(bits: int, asymptotic: int) -> None:
    # the residual's surplus: all newest 128 values, and no keys at a multiple of 128
    tokens = 128 * 1000
    surplus = 128 * (256 - asymptotic // 2)
    assert kv_bytes(one_head(128), kivi(bits), tokens) == asymptotic * tokens + surplus


def test_kivi_by_hand_at_an_odd_length() -> None:
    # T = 300: keys 256 quantized + 44 in 16 bit; values 172 quantized + 128 in 16 bit
    keys = 256 * 128 // 4 + 256 // 32 * 128 * 4 + 44 * 128 * 2
    values = 172 * (128 // 4 + 128 // 32 * 4) + 128 * 128 * 2
    assert kv_bytes(one_head(128), kivi(2), 300) == keys + values
    assert kv_bytes(one_head(128), kivi(2), 100) == 100 * 512
    assert kv_bytes(one_head(128), kivi(2), 0) == 0


def test_int8_and_int4_equal_arrays_really_packed() -> None:
    tokens, heads, dim, group = 37, 3, 64, 32
    states = np.random.default_rng(0).normal(size=(heads, tokens, dim)).astype(np.float32)
    scale = np.abs(states).max(-1) / 127
    payload = np.rint(states / scale[..., None]).astype(np.int8)
    smol = one_head(dim, kv_heads=heads)
    assert kv_bytes(smol, parse_one("int8"), tokens) == 2 * (payload.nbytes + scale.astype(np.float32).nbytes)

    grouped = states.reshape(heads, tokens, dim // group, group)
    zero = grouped.min(-1)
    steps = (grouped.max(-1) - zero) / 15
    codes = np.rint((grouped - zero[..., None]) / steps[..., None]).astype(np.uint8).reshape(heads, tokens, dim)
    packed = codes[..., ::2] | codes[..., 1::2] << 4
    expected = packed.nbytes + steps.astype(np.float16).nbytes + zero.astype(np.float16).nbytes
    assert kv_bytes(smol, parse_one("int4"), tokens) == 2 * expected


def test_residual_tokens_stay_in_16_bit() -> None:
    kv = KVConfig("r", TokenHead("int8"), TokenHead("int8"), residual=16)
    assert kv_bytes(one_head(64), kv, 10) == 10 * 256
    assert kv_bytes(one_head(64), kv, 100) == 84 * 136 + 16 * 256


def test_window_override_and_sinks() -> None:
    streaming = KVConfig("s", tokens=Window(512, 4))
    assert kv_bytes(one_head(64), streaming, 100) == 100 * 256
    assert kv_bytes(one_head(64), streaming, 10_000) == 516 * 256
    # the model's own smaller window stays
    assert kv_bytes(one_head(64, window=128), streaming, 10_000) == 128 * 256
    assert kv_bytes(one_head(64, window=4096), KVConfig("w", tokens=Window(512)), 10_000) == 512 * 256


@pytest.mark.parametrize(("skip", "skipped"), [((0, 1), 2), ((-1,), 1), ((0, -18), 1), (("sliding_window",), 15)])
def test_skipped_layers_stay_in_16_bit(skip: tuple[SkipLayer, ...], skipped: int) -> None:
    gemma = builtin_shape("gemma-3-270m")
    kv = KVConfig("int8", TokenHead("int8"), TokenHead("int8"), skip_layers=skip)
    # within every window all 18 layers are alike: 1,024 B in 16 bit, 520 B in 8 bit
    assert kv_bytes(gemma, kv, 100) == 100 * (skipped * 1024 + (18 - skipped) * 520)


def test_merged_kv_heads() -> None:
    llama = builtin_shape("llama-3.1-8b")
    assert kv_bytes(llama, KVConfig("mqa", kv_heads=1), K4) * 8 == reference_bytes(llama, K4)
    with pytest.raises(ConfigError, match=r"8 KV heads of 'llama-3.1-8b' cannot be merged to 3"):
        kv_bytes(llama, KVConfig("gqa", kv_heads=3), K4)


def test_infini_memory_is_constant_beyond_the_segment() -> None:
    llama = builtin_shape("llama-3.1-8b")
    kv = KVConfig("infini", memory=Infini(2048))
    memory = 32 * 8 * (128 * 128 + 128) * 4
    assert memory == 16_908_288
    assert kv_bytes(llama, kv, K128) == kv_bytes(llama, kv, K4) == memory + 131_072 * 2048
    assert kv_bytes(llama, kv, 0) == memory


@pytest.mark.parametrize(
    ("kv", "match"),
    [
        (parse_one("int8"), "MLA latent of 576 elements"),
        (parse_one("fp8"), "no K/V to quantize"),
        (KVConfig("gqa", kv_heads=1), "MLA latent"),
    ],
)
def test_latents_are_not_quantized(kv: KVConfig, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        kv_bytes(builtin_shape("deepseek-v3"), kv, 1)


@pytest.mark.parametrize(
    ("kv", "dim", "match"),
    [
        (parse_one("int4"), 80, r"groups of 32 .*\(80 = 2 × 32 \+ 16\)"),
        (GROUP_64, 96, r"96 = 1 × 64 \+ 32"),
        (parse_one("int4"), 16, r"16 = 0 × 32 \+ 16"),
        (INT4_TOKEN, 65, "65 elements of 4 bits"),
        (KVConfig("x", TokenHead("int8"), TokenHead("int8"), skip_layers=(9,)), 64, "layers 0 to 1"),
    ],
)
def test_impossible_settings_are_refused(kv: KVConfig, dim: int, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        kv_bytes(one_head(dim, layers=2), kv, 10)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Plain("int5"), "no element type 'int5'"),
        (lambda: Grouped("int4", 3), "group_size 3 must be a multiple of 2"),
        (lambda: KVConfig("x", memory=Infini(0)), "segment is 0"),
        (lambda: KVConfig("x", tokens=Window(8, -1)), "sinks is -1"),
        (lambda: kivi(2, residual=0), "positive multiple"),
        (lambda: kivi(2, residual=100), "positive multiple"),
    ],
)
def test_values_that_are_no_setting_cannot_be_made(make: Callable[[], object], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        make()


def test_skipping_every_layer_makes_any_group_fit() -> None:
    kv = KVConfig("x", Grouped("int4", 32), Grouped("int4", 32), skip_layers=(0,))
    assert kv_bytes(one_head(80), kv, 10) == 10 * 320


@pytest.mark.parametrize(("tokens", "batch"), [(-1, 1), (1, 0)])
def test_no_negative_caches(tokens: int, batch: int) -> None:
    for formula in (reference_bytes, naive_mha_bytes):
        with pytest.raises(ConfigError, match="is no cache"):
            formula(one_head(64), tokens, batch)


def test_stored_tokens_leave_out_the_last_generated_one() -> None:
    assert stored_tokens(4064, 7) == 4070
    assert stored_tokens(10, 1) == 10
    assert stored_tokens(10, 0) == 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [("80GiB", 85_899_345_920), ("24GB", 24 * 10**9), ("512 MiB", 2**29), ("1.5gib", 3 * 2**29), ("1000", 1000)],
)
def test_parse_bytes(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "80", "0", "GiB", "-1GB", "80 G", "1e9", "0.1B"])
def test_parse_bytes_refuses(text: str) -> None:
    if text == "80":
        assert parse_bytes(text) == 80
        return
    with pytest.raises(ConfigError, match="write for instance 80GiB"):
        parse_bytes(text)


def test_human_bytes() -> None:
    assert [human_bytes(b) for b in (0, 1023, 1536, 1_342_177_280, 5 * 2**40)] == [
        "0 B",
        "1023 B",
        "1.50 KiB",
        "1.25 GiB",
        "5.00 TiB",
    ]


def test_fits_counts_weights_and_cache() -> None:
    assert fits(60, 20, 80) is True
    assert fits(61, 20, 80) is False
    assert fits(None, 81, 80) is False
    assert fits(None, 1, 80) is None
    assert fits(1, 1, None) is None


def test_memory_rows() -> None:
    llama = builtin_shape("llama-3.1-8b")
    rows = memory_rows(llama, [parse_one("bf16"), parse_one("int8")], [K4, K128], batch=2, gpu_bytes=40 * GIB)
    assert [(r.kv, r.length, r.fits) for r in rows] == [
        ("bf16", K4, True),
        ("bf16", K128, False),
        ("int8", K4, True),
        ("int8", K128, True),
    ]
    assert rows[3].logical_bytes == 2 * K128 * 32 * 8 * 264
    assert rows[3].reference_bytes == 32 * GIB
    assert rows[3].naive_mha_bytes == 128 * GIB
    assert rows[3].weights_bytes == 16_060_522_496 == weights_bytes(llama)
    assert list(rows[0].to_json()) == [
        "kv",
        "length",
        "batch",
        "logical_bytes",
        "allocated_bytes",
        "naive_mha_bytes",
        "reference_bytes",
        "weights_bytes",
        "formula",
        "fits",
    ]


def test_gpt_oss_weights_are_as_small_as_their_checkpoint() -> None:
    assert (weights_bytes(builtin_shape("gpt-oss-20b")) or 0) / GIB == pytest.approx(12.8, abs=0.1)
    assert (weights_bytes(builtin_shape("gpt-oss-120b")) or 0) / GIB == pytest.approx(60.8, abs=0.2)


def evaluate(formula: str, tokens: int) -> float:
    """The number that a formula text stands for, so that the words cannot drift from the bytes."""
    left = formula.split(" = ", maxsplit=1)[0]
    left = re.sub(r"(\d),(\d)", r"\1\2", left)
    left = re.sub(r"[KV] (\d)", r"\1", left)
    left = re.sub(r"\b(layers?|KV heads?|latent elements|B|scales|of state|\(cache shared\))(?![\w(])", "", left)
    left = left.replace("(cache shared)", "").replace("×", "*")
    return float(eval(left, {"min": min, "T": tokens}))


@pytest.mark.parametrize("model", ["llama-2-70b", "gemma-3-270m", "mistral-7b", "starcoder-15b", "gpt-oss-20b"])
@pytest.mark.parametrize("setting", ["bf16", "int8", "int4", "fp8", "fp8(scales=dynamic)"])
@pytest.mark.parametrize("tokens", [100, 5000])
def test_formula_text_evaluates_to_the_bytes(model: str, setting: str, tokens: int) -> None:
    shape, kv = builtin_shape(model), parse_one(setting)
    assert evaluate(formula_text(shape, kv), tokens) == kv_bytes(shape, kv, tokens)


def test_formula_text_of_other_settings() -> None:
    llama = builtin_shape("llama-3.1-8b")
    assert formula_text(llama, BF16) == "2 × 32 layers × 8 KV heads × 128 × T × 2 B = 131,072 B × T"
    infini = KVConfig("i", memory=Infini(2048))
    assert evaluate(formula_text(llama, infini), 9000) == kv_bytes(llama, infini, 9000)
    latent = builtin_shape("deepseek-v3")
    text = "61 layers × (512 + 64) latent elements × T × 2 B = 70,272 B × T"
    assert formula_text(latent, BF16) == text
    mixed = ModelShape("m", (LayerShape("linear", state_bytes=1000), LayerShape("shared"), *one_head(64).layers), 1, 64)
    text = "1 layer × 1,000 B of state + 1 layer × 0 B (cache shared) + 2 × 1 layer × 1 KV head × 64 × T × 2 B"
    assert formula_text(mixed, BF16) == f"{text} = 256 B × T + 1,000 B"
    assert formula_text(llama, kivi(2)).endswith("N = T], r = min(N, 128), q = N − N mod 128")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("llama-2-70b", "uses 64 heads where this model stores 8 KV heads: 8 × too big at 131,072 tokens"),
        ("starcoder-15b", "48 heads where this model stores 1 KV head: 48 × too big"),
        ("llama-2-7b", "is right for this model"),
        ("qwen3-0.6b", "= 64 elements where they have 128: right by chance"),
        ("gemma-3-270m", "15 of 18 layers keep 512: 14.7 × too big"),
        ("deepseek-v3", "latent of 576: 24.9 × too big"),
    ],
)
def test_naive_note_says_why(model: str, words: str) -> None:
    assert words in naive_note(builtin_shape(model), K128)


def test_naive_note_also_says_too_small() -> None:
    wide = ModelShape("wide", (LayerShape("full", 4, 128, 128),), heads=4, hidden_size=256)
    assert naive_note(wide, 10).endswith("= 64 elements where they have 128: 2 × too small at 10 tokens.")
