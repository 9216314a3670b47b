"""Hadamard matrices and the fast Walsh-Hadamard transform, behind which rotated formats store their elements."""

from __future__ import annotations

from functools import cache

import torch


def _check(size: int) -> None:
    if size < 1 or size & (size - 1):
        raise ValueError(f"a Hadamard matrix of Sylvester's construction has a power of two rows, not {size}")


@cache
def sylvester(size: int) -> torch.Tensor:
    """The symmetric matrix of 1 and -1, fp32 ``[size, size]``; its square is ``size`` times the identity.

    Raises:
        ValueError: ``size`` is no power of two.
    """
    _check(size)
    matrix = torch.ones(1, 1)
    while len(matrix) < size:
        matrix = torch.cat((torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)))
    return matrix


@cache
def orthonormal(size: int) -> torch.Tensor:
    """``sylvester`` divided by the root of its size, fp32 ``[size, size]``: its own inverse.

    Raises:
        ValueError: ``size`` is no power of two.
    """
    return sylvester(size).div(size**0.5)


def transform(states: torch.Tensor) -> torch.Tensor:
    """``states [..., size]`` times ``sylvester(size)`` by ``log2(size)`` rounds of sums and differences.

    The order of the sums decides how they are rounded: neighbors first, then pairs of pairs.

    Raises:
        ValueError: the last dimension is no power of two.
    """
    size = states.shape[-1]
    _check(size)
    for half in (2**i for i in range(size.bit_length() - 1)):
        first, second = states.reshape(*states.shape[:-1], -1, 2, half).unbind(-2)
        states = torch.stack((first + second, first - second), dim=-2).flatten(-3)
    return states
