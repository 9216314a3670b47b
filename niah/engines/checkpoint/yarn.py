"""YaRN: extends a model's context beyond the trained length, for engines that load its weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from niah.engines.base import ModelInfo
from niah.errors import ConfigError

OPTION = "backend.yarn_factor"


def stretched(info: ModelInfo, factor: float) -> ModelInfo:
    """The model info with its context extended by ``yarn_factor``.

    Raises:
        ConfigError: the model already scales its positions, or has no known context length.
    """
    if info.context_tokens is None:
        raise ConfigError(f"{OPTION} is {factor:g}, but the config of {info.name!r} states no context to stretch.")
    own = info.shape.stretch if info.shape is not None else None
    if own is not None:
        raise ConfigError(
            f"{OPTION} is {factor:g}, but the config of {info.name!r} stretches its positions already ({own.kind}, "
            f"factor {own.factor:g}): leave the option out."
        )
    return replace(info, context_tokens=int(info.context_tokens * factor))


def yarn(config: Any, factor: float, name: str) -> None:
    """Put YaRN (arXiv:2309.00071) into a config of transformers, by the parameters it has already.

    Raises:
        ConfigError: a model without rotary positions, or whose layers have different ones.
    """
    text = config.get_text_config()
    own = getattr(text, "rope_parameters", None)
    if not own:
        raise ConfigError(f"{OPTION} is {factor:g}, but {name!r} has no rotary positions that could be stretched.")
    if any(isinstance(section, dict) for section in own.values()):
        raise ConfigError(
            f"{OPTION} is {factor:g}, but the layers of {name!r} differ in their rotary positions: which of them to "
            "stretch is not known."
        )
    original = text.max_position_embeddings
    text.rope_parameters = own | {
        "rope_type": "yarn",
        "factor": float(factor),
        "original_max_position_embeddings": original,
    }
    text.max_position_embeddings = int(original * factor)


def in_force(config: Any) -> str | None:
    """How a loaded model scales its positions: ``yarn, factor 4``; None where it does not."""
    own = getattr(config.get_text_config(), "rope_parameters", None) or {}
    sections = [section for section in own.values() if isinstance(section, dict)] or [own]
    said = [
        f"{section['rope_type']}" + (f", factor {section['factor']:g}" if section.get("factor") else "")
        for section in sections
        if section.get("rope_type", "default") not in ("default", "proportional")
    ]
    return "; ".join(dict.fromkeys(said)) or None
