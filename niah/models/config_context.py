"""How long a sequence a config allows: its own length, stretched where the file stretches its positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from niah.models.hf_config import CONTEXT, ConfigReader

# types whose files have the stretched length in max_position_embeddings, or the length before the stretching
_FROM_ORIGINAL = ("yarn", "longrope", "su", "llama3", "deepseek_yarn", "deepseek_llama_scaling")
# the stretched length is only what the file states: the factor is of frequencies
_AS_STATED = ("llama3", "deepseek_llama_scaling", "longrope", "su")
_FROM_STATED = ("linear", "dynamic")
# their files have linear scaling and the stretched length
_STRETCHED_ALREADY = "gemma3"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Positions stretched beyond the trained length.

    Attributes:
        kind: ``yarn``, ``linear``, ``dynamic``, ``llama3``, ``longrope`` or what else the file says.
        factor: as the file has it.
        stated: the context that the file states in ``max_position_embeddings`` or its like.
    """

    kind: str
    factor: float
    stated: int


def context_of(reader: ConfigReader) -> tuple[int | None, Stretch | None]:
    """(longest sequence in tokens, how positions are stretched); None where the file does not say.

    YaRN: factor × original length, where the stated length is not more. Llama 3's and LongRoPE's factors: the stated
    length, which is the stretched one already, unless it equals the original. Linear and dynamic: factor × the stated
    length, but for Gemma 3's linear one. That is how transformers' rope utilities and vLLM's ``max_model_len`` read
    these files, except that vLLM takes a YaRN file's stated length as stretched in every case.

    Raises:
        ConfigError: the stated length is no positive integer.
    """
    stated = reader.optional(*CONTEXT)
    if stated is None:
        return None, None
    found = stated
    stretch = None
    for kind, factor, original in _stretches(reader):
        stretch = Stretch(kind, factor, stated)
        if kind in _AS_STATED and original is not None and stated > original:
            reached = float(stated)
        elif kind in _FROM_ORIGINAL or (kind in _FROM_STATED and not _is_stretched_already(reader, kind)):
            reached = factor * (original or stated)
        else:
            reached = float(stated)
        found = max(found, int(reached))
    return found, stretch


def _is_stretched_already(reader: ConfigReader, kind: str) -> bool:
    return kind == "linear" and reader.model_type.startswith(_STRETCHED_ALREADY)


def _stretches(reader: ConfigReader) -> Iterator[tuple[str, float, int | None]]:
    """(kind, factor, original length) of each kind of layer that is stretched."""
    for section in rope_sections(reader.values):
        kind = str(section.get("rope_type") or section.get("type") or "default")
        factor = section.get("factor")
        original = section.get("original_max_position_embeddings")
        if original is None:
            original = reader.values.get("original_max_position_embeddings")
        if isinstance(original, bool) or not isinstance(original, int) or original < 1:
            original = None
        if isinstance(factor, bool) or not isinstance(factor, (int, float)) or factor <= 1:
            continue
        yield kind, float(factor), original


def rope_sections(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rotary parameters of a config, one entry for each kind of layer that has its own."""
    found = values.get("rope_parameters") or values.get("rope_scaling")
    if not isinstance(found, Mapping):
        return []
    nested = [section for section in found.values() if isinstance(section, Mapping)]
    return nested or [found]
