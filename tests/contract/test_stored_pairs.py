"""The check and the store read one declaration: what is accepted is stored and read, what is refused is not built."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
import torch

from niah.backends.transformers.cache.build import build_cache
from niah.backends.transformers.plugin import PLUGIN
from niah.backends.transformers.support import FORMATS
from niah.errors import ConfigError
from niah.kv.config import KVConfig
from niah.kv.formats import (
    ELEMENT_BITS,
    Block,
    Format,
    Grouped,
    Hqq,
    KiviKeys,
    KiviValues,
    Packaged,
    Plain,
    Quanto,
    TensorScale,
    TokenHead,
)
from niah.kv.memory.totals import kv_bytes
from niah.kv.vllm_formats import Nvfp4, TurboQuant
from niah.models.shape import LayerShape, ModelShape
from niah.types import Host

TOKENS, HEADS, DIM = 45, 2, 32
SHAPE = ModelShape("one layer", (LayerShape("full", HEADS, DIM, DIM),), heads=4, hidden_size=128)
STATES = torch.randn(2, 1, HEADS, TOKENS, DIM, generator=torch.Generator().manual_seed(6))
# of standard normal numbers, by bits: half a step of what 32 of them span, and more for the rounding of scales
ERRORS = {32: 1e-6, 16: 0.02, 8: 0.6, 4: 0.4, 2: 1.6}


def formats(element: str) -> Iterator[tuple[Format, Format, int]]:
    """Keys, values and residual of every format that can be written down for an element."""
    for one in (
        Plain(element),
        TokenHead(element),
        TokenHead(element, "zero"),
        TensorScale(element),
        TensorScale(element, "checkpoint"),
        TensorScale(element, rounding="zero"),
        Grouped(element, 16),
        Grouped(element, 16, symmetric=True),
        Quanto(element, 16),
        Hqq(element, 16),
        Nvfp4(element),
    ):
        yield one, one, 0
    yield KiviKeys(element, 16), KiviValues(element, 16), 32
    yield TurboQuant(element, "keys"), TurboQuant(element, "values"), 0
    if element.startswith("q"):
        yield Block(element), Block(element), 0


def refused(kv: KVConfig) -> bool:
    return bool(PLUGIN.problems(PLUGIN.options(), kv, SHAPE, Host()))


def stores(kv: KVConfig) -> bool:
    """Whether the cache takes tokens and gives them back, in the formula's bytes."""
    try:
        (layer,) = build_cache(kv, SHAPE).layers
        layer.reserve(TOKENS, 0)
        for start in range(0, TOKENS, 20):
            layer.update(*(states[:, :, start : start + 20] for states in STATES))
    except (ConfigError, ValueError, ImportError):
        return False
    assert layer.in_force()["kv.k_dtype"] == kv.keys.element
    assert layer.in_force()["kv.v_dtype"] == kv.values.element
    if not isinstance(kv.keys, Packaged):  # those pack a context in one pass: test_caches counts them
        assert layer.logical_bytes(TOKENS) == kv_bytes(SHAPE, kv, TOKENS), kv
    for side, states, stored in zip(layer._sides, STATES, (kv.keys, kv.values), strict=True):
        read = side.read(torch.float32)
        assert read.shape == states.shape, kv
        assert (read - states).abs().max() < ERRORS[stored.bits], kv
    return True


@pytest.mark.parametrize("element", sorted(ELEMENT_BITS))
def test_accepted_by_the_check_is_stored_and_read_by_the_cache(element: str) -> None:
    asked = [KVConfig("x", keys, values, residual) for keys, values, residual in formats(element)]
    accepted = [kv for kv in asked if not refused(kv) and element != "auto"]
    assert [kv for kv in asked if stores(kv)] == accepted


def test_sides_are_stored_each_in_its_own_format() -> None:
    """Any two that stand alone go together."""
    alone = [Plain("bf16"), TokenHead("int8"), Grouped("int4", 16), TensorScale("fp8_e4m3"), TokenHead("fp8_e5m2")]
    for keys, values in product(alone, repeat=2):
        kv = KVConfig("x", keys, values)
        assert not refused(kv)
        assert stores(kv)


def test_each_declared_pair_can_be_had() -> None:
    declared = {pair for pairs in FORMATS.values() for pair in pairs}
    asked = {keys.pair for element in ELEMENT_BITS for keys, _, _ in formats(element)}
    asked |= {values.pair for element in ELEMENT_BITS for _, values, _ in formats(element)}
    zero = {TensorScale(element, rounding="zero").pair for element in ("fp8_e4m3", "fp8_e5m2")}
    assert declared <= asked | zero


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        (Grouped("int2", 32), "has no keys and values stored as int2 in groups of 32"),
        (TensorScale("fp8_e4m3", "checkpoint"), "has no keys and values stored as fp8_e4m3 with checkpoint scales"),
        (Nvfp4("nvfp4"), "has no keys and values stored as nvfp4"),
    ],
)
def test_what_is_not_declared_is_refused_in_one_sentence(stored: Format, reason: str) -> None:
    (problem,) = PLUGIN.problems(PLUGIN.options(), KVConfig("x", stored, stored), SHAPE, Host())
    assert reason in problem.reason


def test_a_residual_that_cuts_through_groups_is_no_setting() -> None:
    with pytest.raises(ConfigError, match="the residual 40 must be a positive multiple of 32"):
        KVConfig("x", KiviKeys("int4", 32), KiviValues("int4", 32), residual=40)
