"""The check and the store read one declaration: what is accepted is stored and read, what is refused is not built."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from niah.backends.transformers.cache.build import build_cache
from niah.backends.transformers.check_formats import format_problems
from niah.backends.transformers.stored import ELEMENTS, GRANULARITIES
from niah.errors import ConfigError
from niah.kv.config import ELEMENT_BITS, KVConfig
from niah.kv.memory.totals import kv_bytes
from niah.models.shape import LayerShape, ModelShape

TOKENS, HEADS, DIM = 45, 2, 32
SHAPE = ModelShape("one layer", (LayerShape("full", HEADS, DIM, DIM),), heads=4, hidden_size=128)
STATES = torch.randn(2, 1, HEADS, TOKENS, DIM, generator=torch.Generator().manual_seed(6))
# of standard normal numbers, by bits: half a step of what 32 of them span, and more for the rounding of scales
ERRORS = {32: 1e-6, 16: 0.02, 8: 0.5, 4: 0.4, 2: 1.6}
SCALES = ("dynamic", "unit", "checkpoint")


def settings(k: str, v: str) -> list[KVConfig]:
    asked = product(sorted({*GRANULARITIES, "block", "per_moon"}), SCALES, (True, False), (None, 16))
    return [
        KVConfig("x", k, v, granularity=kind, scales=scales, symmetric=symmetric, group_size=group, residual=residual)
        for kind, scales, symmetric, group in asked
        for residual in ([32] if kind == "kivi" else [0])
    ]


def stores(kv: KVConfig) -> bool:
    """Whether the cache takes tokens and gives them back, in the formula's bytes."""
    try:
        (layer,) = build_cache(kv, SHAPE).layers
        layer.reserve(TOKENS, 0)
        for start in range(0, TOKENS, 20):
            layer.update(*(states[:, :, start : start + 20] for states in STATES))
    except (ConfigError, ValueError, ImportError):
        return False
    assert layer.in_force()["kv.k_dtype"] == kv.k_dtype
    assert layer.in_force()["kv.v_dtype"] == kv.v_dtype
    if kv.granularity not in ("quanto", "hqq"):  # those pack a context in one pass: test_caches counts them
        assert layer.logical_bytes(TOKENS) == kv_bytes(SHAPE, kv, TOKENS), kv
    for side, states, element in zip(layer._sides, STATES, (kv.k_dtype, kv.v_dtype), strict=True):
        read = side.read(torch.float32)
        assert read.shape == states.shape, kv
        assert (read - states).abs().max() < ERRORS[ELEMENT_BITS[element]], kv
    return True


@pytest.mark.parametrize(("k", "v"), list(product(sorted(ELEMENTS), repeat=2)))
def test_accepted_by_the_check_is_stored_and_read_by_the_cache(k: str, v: str) -> None:
    asked = settings(k, v)
    accepted = [kv for kv in asked if not format_problems(kv, SHAPE)]
    assert [kv for kv in asked if stores(kv)] == accepted


def test_each_element_can_be_had() -> None:
    for element in ELEMENTS:
        assert any(not format_problems(kv, SHAPE) for kv in settings(element, element)), element


@pytest.mark.parametrize(
    ("kv", "reason"),
    [
        (KVConfig("x", "int2", "int2", "group_token", 32, symmetric=False), "scales of the kind kivi or quanto"),
        (KVConfig("x", "int2", "int2", "group_token", 32, symmetric=False), "int2 is stored"),
        (KVConfig("x", "int4", "int4", "group_token", symmetric=False), "in groups, whose size is missing"),
        (KVConfig("x", "int4", "int4", "group_token", 32), "with a zero point"),
        (KVConfig("x", "int8", "int8", "token_head", scales="unit"), "with dynamic scales, not unit"),
        (KVConfig("x", "fp8_e4m3", "fp8_e4m3", "tensor"), "with unit scales, not dynamic"),
        (KVConfig("x", "int8", "int8", "group_token", 32), "scales of the kind"),
        (KVConfig("x", "int4", "int4", "kivi", 32, symmetric=False, residual=40), "the residual 40 is no multiple"),
    ],
)
def test_the_check_says_what_goes_together(kv: KVConfig, reason: str) -> None:
    assert any(reason in problem.reason for problem in format_problems(kv, SHAPE))
