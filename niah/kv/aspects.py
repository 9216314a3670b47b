"""Settings joined by ``+``: ``gqa(kv_heads=1)+int8+skip(0,-1)``; each part says its own thing, no two the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from niah.errors import ConfigError
from niah.kv.config import KVConfig, is_quantised

# What a setting says, in the order in which names are written, with the fields that say it.
ASPECTS: Mapping[str, tuple[str, ...]] = {
    "the number of KV heads": ("kv_heads",),
    "the stored type": (
        "k_dtype", "v_dtype", "granularity", "group_size", "symmetric", "scales", "rounding", "residual",
        "prefill_reads",
    ),
    "the layers left in 16 bit": ("skip_layers",),
    "the window": ("window", "sinks", "sink_positions"),
    "the memory": ("memory", "segment", "memory_gate", "memory_update"),
    "the ranks of a sequence": ("context_parallel",),
    "the devices": ("tp", "pp"),
    "the paging": ("block_size", "pool_bytes"),
    "the place of the cache": ("offload",),
    "the prefill chunk": ("prefill_chunk",),
    "the rope scaling": ("rope",),
    "options of an engine": ("native",),
}  # fmt: skip
STORED_TYPE = "the stored type"
_DEFAULT = KVConfig("")


@dataclass(frozen=True, slots=True)
class Part:
    """One name of a combination.

    Attributes:
        says: the aspects that it sets, in the order of ``ASPECTS``.
    """

    setting: KVConfig
    says: tuple[str, ...]

    @staticmethod
    def of(setting: KVConfig, *, is_plain_type: bool) -> Part:
        """``is_plain_type`` marks a preset such as bf16, whose fields are all defaults and which still names a type."""
        changed = set(_changed(setting))
        says = tuple(aspect for aspect, names in ASPECTS.items() if changed.intersection(names))
        return Part(setting, says or ((STORED_TYPE,) if is_plain_type else ()))


def combine(parts: Sequence[Part]) -> KVConfig:
    """One setting of all parts, named by them in the order of ``ASPECTS``.

    Raises:
        ConfigError: two parts that say the same thing, or things that exclude each other.
    """
    order = list(ASPECTS)
    ranked = sorted(parts, key=lambda part: order.index(part.says[0]) if part.says else len(order))
    name = "+".join(part.setting.name for part in ranked)
    said: dict[str, str] = {}
    values: dict[str, object] = {}
    for part in ranked:
        for aspect in part.says:
            if aspect in said:
                twice = f"{said[aspect]} and {part.setting.name} both set {aspect}"
                raise ConfigError(f"{name}: {twice}; keep one of them.")
            said[aspect] = part.setting.name
        values |= {field: getattr(part.setting, field) for field in _changed(part.setting)}
    setting = replace(_DEFAULT, name=name, **values)  # type: ignore[arg-type]
    check_combination(setting)
    return setting


def check_combination(setting: KVConfig) -> None:
    """Refuse what no cache can be, whatever the model and the engine.

    Raises:
        ConfigError: skipped layers of a cache that is 16 bit anyway, a window beside a compressive memory, or KIVI
            where tokens are dropped.
    """
    if setting.skip_layers and not is_quantised(setting):
        raise ConfigError(
            f"{setting.name}: the layers are in 16 bit anyway; skip goes with a quantised type, as in int8+skip(0,-1)."
        )
    if setting.memory == "infini" and setting.window is not None:
        raise ConfigError(
            f"{setting.name}: Infini-attention has a local segment in place of a window; drop the window."
        )
    drops = setting.window is not None or setting.memory == "infini"
    if setting.granularity == "kivi" and drops:
        raise ConfigError(
            f"{setting.name}: KIVI quantises keys {setting.group_size} tokens at a time, and a cache that drops old "
            "tokens would have to cut through such a group; use k8v4 or int4, whose tokens stand alone."
        )


def _changed(setting: KVConfig) -> list[str]:
    names = (field.name for field in fields(KVConfig) if field.name != "name")
    return [name for name in names if getattr(setting, name) != getattr(_DEFAULT, name)]
