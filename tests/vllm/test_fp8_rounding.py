"""niah's fp8 with ``rounding=zero`` against the bytes that vLLM's CPU kernel writes."""

from __future__ import annotations

import pytest
import torch

from niah.backends.transformers.formats.fp8 import DTYPES, Fp8

TOKENS, KV_HEADS, HEAD_DIM, BLOCK = 128, 3, 64, 128


@pytest.mark.parametrize("element", sorted(DTYPES))
def test_the_cpu_kernel_cuts_the_mantissa_off(element: str, has_avx512: bool) -> None:
    if not has_avx512:
        pytest.skip("an fp8 cache on vLLM's CPU build needs AVX-512 or AMX, which this processor does not have")
    pytest.importorskip("vllm._C", reason="this build of vLLM has no CPU kernels")
    from vllm import _custom_ops as ops

    torch.manual_seed(0)
    values = (torch.randn(TOKENS, KV_HEADS, HEAD_DIM) * 2).bfloat16()
    # subnormals, which the kernel treats in a way of its own, are a few in a thousand and hardly weigh anything
    values[values.abs() < 2**-5] = 1.0
    cache = torch.zeros(1, KV_HEADS, 2 * BLOCK, HEAD_DIM, dtype=torch.uint8)
    key_cache, value_cache = cache.chunk(2, dim=2)
    slots = torch.arange(TOKENS)
    ops.cpu_attn_reshape_and_cache(values, values, key_cache, value_cache, slots, "vec", 1.0, 1.0, element)
    # values lie as they are, keys in an order that suits the kernel
    stored = value_cache[0].permute(1, 0, 2).contiguous()
    towards_zero = Fp8(element, dynamic=False, rounding="zero").encode(values)[0].view(torch.uint8)
    nearest = Fp8(element, dynamic=False).encode(values)[0].view(torch.uint8)
    assert torch.equal(stored, towards_zero)
    assert not torch.equal(stored, nearest)
    assert torch.equal(key_cache.flatten().sort().values, towards_zero.flatten().sort().values)
