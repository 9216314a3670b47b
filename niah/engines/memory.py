"""The ``KVUsage`` of an answer: formula, 16-bit and textbook bytes from shape and setting, to which a session adds
what it has measured.
"""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.memory.totals import kv_bytes, naive_mha_bytes, reference_bytes
from niah.models.shape import ModelShape
from niah.types import KVUsage


def usage_by_formula(
    shape: ModelShape | None, kv: KVConfig, tokens: int, *, context_tokens: int | None = None
) -> KVUsage:
    """What ``tokens`` stored tokens need by formula; measured bytes and their source are for the session to add.

    Args:
        shape: None where it is not known: then there is no formula.
        kv: the setting as the engine stores it. "auto" is whatever the engine made of it, for which the shape alone
            has no formula.
        tokens: tokens whose K and V are stored, answer included.
        context_tokens: where a setting reads raw chunks while it processes a prompt, the tokens that are packed at the
            end of the context; what follows them stays in 16 bit. None packs all tokens.
    """
    if shape is None:
        return KVUsage(tokens=tokens)
    packed = tokens if context_tokens is None or kv.prefill_reads == "stored" else context_tokens
    formula = None
    if "auto" not in (kv.keys.element, kv.values.element):
        formula = kv_bytes(shape, kv, packed) + (reference_bytes(shape, tokens - packed) if tokens > packed else 0)
    return KVUsage(
        tokens=tokens,
        formula_bytes=formula,
        reference_bytes=reference_bytes(shape, tokens),
        naive_mha_bytes=naive_mha_bytes(shape, tokens),
    )
