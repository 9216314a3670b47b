"""Numerics of the stored formats, against values worked out by hand."""

from __future__ import annotations

import pytest
import torch

from niah.backends.transformers.cache.packing import pack, unpack
from niah.backends.transformers.formats.fp8 import Fp8
from niah.backends.transformers.formats.int4 import TokenGroups
from niah.backends.transformers.formats.int8 import Int8TokenHead
from niah.backends.transformers.formats.kivi import ChannelGroups
from niah.backends.transformers.formats.plain import PlainCodec


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
    with pytest.raises(ValueError, match="must be a multiple of 2 and divide the head size 64"):
        TokenGroups(4, 24).encode(torch.zeros(1, 1, 1, 64))


def test_plain_reads_the_same_dtype_without_a_copy() -> None:
    states = torch.randn(1, 1, 4, 8)
    (stored,) = PlainCodec(torch.float32).encode(states)
    assert PlainCodec(torch.float32).decode((stored,), torch.float32).data_ptr() == states.data_ptr()
    (half,) = PlainCodec(torch.bfloat16).encode(states)
    assert half.dtype == torch.bfloat16


def test_bytes_are_shared_by_planes() -> None:
    """Two bits: elements 0, 2, 4, 6 of eight share a byte, from the lowest bits up."""
    codes = torch.tensor([1, 2, 3, 0, 2, 1, 0, 3], dtype=torch.uint8)
    packed = pack(codes, 2)
    assert packed.tolist() == [1 | 3 << 2 | 2 << 4 | 0 << 6, 2 | 0 << 2 | 1 << 4 | 3 << 6]
    assert unpack(packed, 2).tolist() == codes.tolist()
    assert pack(codes, 4).tolist() == [1 | 2 << 4, 2 | 1 << 4, 3 | 0 << 4, 0 | 3 << 4]


@pytest.mark.parametrize("bits", [2, 4])
def test_packing_loses_nothing(bits: int) -> None:
    codes = torch.randint(0, 2**bits, (2, 3, 5, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(unpack(pack(codes, bits), bits), codes)
    assert torch.equal(unpack(pack(codes.flatten(), bits).reshape(-1, 1), bits, dim=0).flatten(), codes.flatten())


def test_kivi_keys_share_a_scale_along_tokens_by_hand() -> None:
    """Four tokens of two channels in 2 bits: channel 0 runs 0…3 (scale 1), channel 1 is -6, 0, 0, 3 (scale 3)."""
    codec = ChannelGroups(2, 4)
    states = torch.tensor([[0.0, -6.0, 9, 9], [1, 0, 9, 9], [2, 0, 9, 9], [3, 3, 9, 9]]).reshape(1, 1, 4, 4)
    packed, scale, low = codec.encode(states)
    assert packed.shape == (1, 1, 1, 4)
    assert scale.flatten()[:2].tolist() == [1.0, 3.0]
    assert low.flatten().tolist() == [0.0, -6.0, 9.0, 9.0]
    read = codec.decode((packed, scale, low), torch.float32)
    assert torch.equal(read, states)
    # a token alone: what lies between two steps goes to the nearer one
    states[0, 0, 1, 1] = -2.0
    assert codec.decode(codec.encode(states), torch.float32)[0, 0, 1].tolist() == [1.0, -3.0, 9.0, 9.0]


def test_kivi_keys_come_in_whole_groups() -> None:
    with pytest.raises(ValueError, match="5 tokens are not a multiple of the group size 4"):
        ChannelGroups(2, 4).encode(torch.zeros(1, 1, 5, 4))


def test_kivi_values_by_hand() -> None:
    """Two groups of four in 2 bits: 0…3 with scale 1, and -1…5 with scale 2."""
    codec = TokenGroups(2, 4)
    packed, scale, low = codec.encode(_states([0.0, 1.0, 2.0, 3.0, -1.0, 1.0, 3.0, 5.0]))
    assert packed.flatten().tolist() == [0 | 2 << 2 | 0 << 4 | 2 << 6, 1 | 3 << 2 | 1 << 4 | 3 << 6]
    assert scale.flatten().tolist() == [1.0, 2.0]
    assert low.flatten().tolist() == [0.0, -1.0]


def test_fp8_at_scale_one_rounds_to_the_nearest_number_and_saturates() -> None:
    """e4m3 has steps of 1/8 between 1 and 2, ties to even; e5m2 steps of 1/4."""
    e4m3, e5m2 = Fp8("fp8_e4m3", dynamic=False), Fp8("fp8_e5m2", dynamic=False)
    states = _states([1.05, 1.0625, 1.1875, 300.0, 1e6, -1e6, 0.0, 1e-9])
    read = e4m3.decode(e4m3.encode(states), torch.float32).flatten().tolist()
    assert read == [1.0, 1.0, 1.25, 288.0, 448.0, -448.0, 0.0, 0.0]
    read = e5m2.decode(e5m2.encode(states), torch.float32).flatten().tolist()
    assert read == [1.0, 1.0, 1.25, 320.0, 57344.0, -57344.0, 0.0, 0.0]
    (payload,) = e4m3.encode(states)
    assert payload.dtype == torch.float8_e4m3fn


def test_fp8_towards_zero_cuts_the_mantissa_off() -> None:
    codec = Fp8("fp8_e4m3", dynamic=False, rounding="zero")
    # between 16 and 18, between 1.75 and 1.875, two subnormals (steps of 1/512), beyond the largest number
    states = torch.tensor([[17.9, -17.9, 1.87, 0.0039, 0.0030, 0.0, 500.0]])
    expected = torch.tensor([[16.0, -16.0, 1.75, 1 / 512, 1 / 512, 0.0, 448.0]])
    assert torch.equal(codec.decode(codec.encode(states), torch.float32), expected)


@pytest.mark.parametrize("element", ["fp8_e4m3", "fp8_e5m2"])
def test_fp8_table_equals_the_conversion(element: str) -> None:
    codec = Fp8(element, dynamic=False)
    every = torch.arange(256, dtype=torch.uint8).view(codec.dtype).reshape(1, 1, 2, 128)
    for dtype in (torch.float32, torch.bfloat16):
        assert torch.equal(codec.decode((every,), dtype).nan_to_num(7.0), every.to(dtype).nan_to_num(7.0))


def test_fp8_dynamic_scale_is_absmax_over_the_largest_number() -> None:
    codec = Fp8("fp8_e4m3", dynamic=True)
    payload, scale = codec.encode(_states([896.0, -448.0, 2.0, 0.0]))
    assert scale.item() == 2.0
    assert payload.float().flatten().tolist() == [448.0, -224.0, 1.0, 0.0]
    assert codec.decode((payload, scale), torch.float32).flatten().tolist() == [896.0, -448.0, 2.0, 0.0]
    assert codec.encode(torch.zeros(1, 1, 1, 4))[1].item() == pytest.approx(1e-6)
