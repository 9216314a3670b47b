"""Aspects that a KV setting asks for, and the combination of parts joined by ``+``, of which no two set the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from niah.errors import ConfigError
from niah.kv.config import KVConfig, Placement, Window

# Aspects of a setting beside its formats, with their names in messages.
# How keys and values are stored is not among them: backends declare pairs of element and layout for that.
ASPECTS: Mapping[str, str] = {
    "merged_heads": "merging of KV heads",
    "residual": "newest tokens in 16 bit beside this format",
    "skip_layers": "layers left in 16 bit",
    "window": "window on every layer",
    "sinks": "attention sinks",
    "compressive_memory": "compressive memory",
    "context_parallel": "context parallelism",
    "tensor_parallel": "tensor parallelism",
    "pipeline_parallel": "pipeline parallelism",
    "paging": "paging",
    "offload": "offloading of the cache",
    "native": "engine-specific options",
}


def aspects(kv: KVConfig) -> Iterator[str]:
    """Aspects that a setting asks for, by the names of ``ASPECTS``; those of plugins by their own names."""
    window, place = kv.window, kv.placement
    asked = {
        "merged_heads": kv.kv_heads is not None,
        # a format that encodes tokens together has a residual by itself
        "residual": kv.residual > 0 and kv.keys.tokens_stand_alone,
        "skip_layers": bool(kv.skip_layers),
        "window": window is not None,
        "sinks": window is not None and window.sinks > 0,
        "compressive_memory": kv.memory is not None,
        "context_parallel": place.context_parallel > 1,
        "tensor_parallel": place.tensor_parallel > 1,
        "pipeline_parallel": place.pipeline_parallel > 1,
        "paging": place.block_size is not None,
        "offload": place.offload is not None,
        "native": bool(kv.native),
    }
    yield from (name for name, is_asked in asked.items() if is_asked)
    yield from dict.fromkeys(extra.aspect for extra in kv.extras)


# What a part of a combination can set, in the order of the canonical name, with the fields that it sets.
_PART_FIELDS: Mapping[str, tuple[str, ...]] = {
    "the number of KV heads": ("kv_heads",),
    "the stored type": ("keys", "values", "residual", "prefill_reads"),
    "the layers left in 16 bit": ("skip_layers",),
    "the window": ("tokens",),
    "the memory": ("memory",),
    "the ranks of a sequence": ("context_parallel",),
    "the devices": ("tensor_parallel", "pipeline_parallel"),
    "the paging": ("block_size",),
    "the place of the cache": ("offload",),
    "options of an engine": ("native",),
    "a method": ("extras",),
}
_STORED_TYPE = "the stored type"
_PLACEMENT = tuple(field.name for field in fields(Placement))
_FIELDS = tuple(field.name for field in fields(KVConfig) if field.name not in ("name", "placement"))
_DEFAULT = KVConfig("")


@dataclass(frozen=True, slots=True)
class Part:
    """One name of a combination.

    Attributes:
        sets: what it sets, in the order of ``_PART_FIELDS``.
    """

    setting: KVConfig
    sets: tuple[str, ...]

    @staticmethod
    def of(setting: KVConfig, *, is_plain_type: bool = False) -> Part:
        """``is_plain_type`` marks a preset such as bf16, whose fields are all defaults and which still names a type."""
        changed = _changed(setting)
        sets = tuple(what for what, names in _PART_FIELDS.items() if changed.keys() & set(names))
        return Part(setting, sets or ((_STORED_TYPE,) if is_plain_type else ()))


def combine(parts: Sequence[Part]) -> KVConfig:
    """One setting of all parts, named by them in the order of ``_PART_FIELDS``.

    Raises:
        ConfigError: two parts set the same thing, or things that exclude each other.
    """
    order = list(_PART_FIELDS)
    ranked = sorted(parts, key=lambda part: order.index(part.sets[0]) if part.sets else len(order))
    name = "+".join(part.setting.name for part in ranked)
    said: dict[str, str] = {}
    values: dict[str, Any] = {}
    for part in ranked:
        for what in part.sets:
            if what in said:
                twice = f"{said[what]} and {part.setting.name} both set {what}"
                raise ConfigError(f"{name}: {twice}; keep one of them.")
            said[what] = part.setting.name
        values |= _changed(part.setting)
    placement = Placement(**{field: values.pop(field) for field in _PLACEMENT if field in values})
    setting = replace(_DEFAULT, name=name, placement=placement, **values)
    check_combination(setting)
    return setting


def check_combination(setting: KVConfig) -> None:
    """Refuse combinations that no cache can have, whatever the model and the engine.

    Raises:
        ConfigError: skipped layers of a cache that is 16 bit anyway, a window beside a compressive memory, or a
            format that packs tokens together where tokens are dropped.
    """
    if setting.skip_layers and not setting.is_quantized:
        raise ConfigError(
            f"{setting.name}: the layers are in 16 bit anyway; skip goes with a quantized type, as in int8+skip(0,-1)."
        )
    if setting.memory is not None and isinstance(setting.tokens, Window):
        raise ConfigError(
            f"{setting.name}: Infini-attention has a local segment in place of a window; drop the window."
        )
    drops = isinstance(setting.tokens, Window) or setting.memory is not None
    if drops and not setting.keys.tokens_stand_alone:
        raise ConfigError(
            f"{setting.name}: {setting.keys.label} quantizes many tokens together, and a cache that drops old tokens "
            "would have to cut through such a group; use k8v4 or int4, whose tokens stand alone."
        )


def _changed(setting: KVConfig) -> dict[str, Any]:
    """Fields that are not the defaults, those of the placement among them."""
    found = {name: getattr(setting, name) for name in _FIELDS if getattr(setting, name) != getattr(_DEFAULT, name)}
    place = {name: getattr(setting.placement, name) for name in _PLACEMENT}
    return found | {name: value for name, value in place.items() if value != getattr(_DEFAULT.placement, name)}
