"""Numerics of the stored formats, against values worked out by hand."""

from __future__ import annotations

import pytest
import torch

from niah.backends.caches.int4 import TokenGroups
from niah.backends.caches.int8 import Int8TokenHead
from niah.backends.caches.plain import Plain


def _states(values: list[float]) -> torch.Tensor:
    return torch.tensor(values).reshape(1, 1, 1, -1)


def test_int8_rounds_halves_away_from_zero_and_scales_by_absmax() -> None:
    payload, scale = Int8TokenHead().encode(_states([127.0, -63.5, 0.5, -0.5, 0.49, 2.5, -2.5, 0.0]))
    assert scale.item() == 1.0
    assert payload.flatten().tolist() == [127, -64, 1, -1, 0, 3, -3, 0]
    assert payload.dtype == torch.int8
    assert scale.dtype == torch.float32


def test_int8_scale_has_a_floor_and_zero_stays_zero() -> None:
    payload, scale = Int8TokenHead().encode(torch.zeros(1, 2, 3, 8))
    assert scale.flatten().tolist() == pytest.approx([1e-6] * 6)
    assert not payload.any()


def test_int8_error_is_within_half_a_step() -> None:
    states = torch.randn(1, 3, 50, 64, generator=torch.Generator().manual_seed(0))
    codec = Int8TokenHead()
    parts = codec.encode(states)
    error = (codec.decode(parts, torch.float32) - states).abs()
    assert bool((error <= parts[1] * 0.5 + 1e-6).all())


@pytest.mark.parametrize("group", [2, 16, 32, 64])
def test_int4_error_is_within_a_step_and_packing_is_real(group: int) -> None:
    states = torch.randn(1, 3, 50, 64, generator=torch.Generator().manual_seed(0))
    codec = TokenGroups(4, group)
    packed, scale, low = codec.encode(states)
    assert packed.shape == (1, 3, 50, 32)
    assert packed.dtype == torch.uint8
    assert scale.shape == low.shape == (1, 3, 50, 64 // group)
    error = (codec.decode((packed, scale, low), torch.float32) - states).abs().unflatten(-1, (-1, group))
    # half a step of rounding, and what fp16 loses in the minimum and the scale
    bound = scale.float().unsqueeze(-1) * 0.5 + states.abs().max() * 2e-3
    assert bool((error <= bound).all())


def test_int4_keeps_the_order_of_elements() -> None:
    states = torch.arange(16.0).reshape(1, 1, 1, 16)
    codec = TokenGroups(4, 16)
    assert codec.decode(codec.encode(states), torch.float32).flatten().tolist() == pytest.approx(list(range(16)))


def test_int4_constant_group_is_exact_and_finite() -> None:
    states = torch.full((1, 1, 4, 32), 0.75)
    codec = TokenGroups(4, 32)
    assert torch.equal(codec.decode(codec.encode(states), torch.float32), states)


def test_int4_refuses_a_group_that_does_not_divide() -> None:
    with pytest.raises(ValueError, match="must be even and divide the head size 64"):
        TokenGroups(4, 24).encode(torch.zeros(1, 1, 1, 64))


def test_plain_reads_the_same_dtype_without_a_copy() -> None:
    states = torch.randn(1, 1, 4, 8)
    (stored,) = Plain(torch.float32).encode(states)
    assert Plain(torch.float32).decode((stored,), torch.float32).data_ptr() == states.data_ptr()
    (half,) = Plain(torch.bfloat16).encode(states)
    assert half.dtype == torch.bfloat16
