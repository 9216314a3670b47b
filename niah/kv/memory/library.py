"""Bytes of the caches that packages quantise for transformers' QuantizedCache: optimum-quanto and hqq.

Groups of ``group_size`` elements lie along head_dim, each with a scale and a zero point in 16 bit. Both packages pack
rows of whole groups, several rows to one of bytes: quanto pads an odd number of rows (``tensor/packed.py`` of 0.2.7),
hqq cannot pack one, so the last token then stays in 16 bit.
"""

from __future__ import annotations

from math import gcd

from niah.kv.config import KVConfig

LIBRARIES = ("quanto", "hqq")
_SIXTEEN_BIT_BYTES = 2


def quantised_tokens(kv: KVConfig, bits: int, elements: int, tokens: int) -> int:
    """How many of ``tokens`` the package quantises, where a token has ``elements`` in all heads of one side."""
    if kv.granularity != "hqq":
        return tokens
    rows_per_byte = 8 // bits
    step = rows_per_byte // gcd(elements // (kv.group_size or elements), rows_per_byte)
    return tokens // step * step


def library_bytes(kv: KVConfig, bits: int, elements: int, tokens: int) -> int:
    """Bytes of one side of one layer after a prompt of ``tokens``."""
    group = kv.group_size or elements
    quantised = quantised_tokens(kv, bits, elements, tokens)
    groups = elements // group * quantised
    rows = -(-groups // (8 // bits))
    scales = groups * 2 * _SIXTEEN_BIT_BYTES
    return rows * group + scales + (tokens - quantised) * elements * _SIXTEEN_BIT_BYTES
