"""What cache each layer keeps: by the file's list of layers, by its pattern, or by the family's rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from niah.errors import ConfigError
from niah.models.config_keys import unknown_among
from niah.models.hf_config import HEADS, KV_HEADS, ConfigReader, kv_heads

# how config.json names a layer's attention, old and new spellings
_LAYER_TYPES: Mapping[str, str] = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "conv": "conv",
}
# every n-th layer is full and the others have a window, where the file does not list its layers
_WINDOW_PATTERNS: Mapping[str, int] = {
    "gemma2": 2,
    "gpt_oss": 2,
    "vaultgemma": 2,
    "cohere2": 4,
    "olmo3": 4,
    "exaone4": 4,
    "gemma3n_text": 5,
    "gemma3": 6,
    "gemma3_text": 6,
    "gemma4_text": 6,
}
# a window in the file is that of every layer, but for the first ``max_window_layers``
_WINDOW_EVERYWHERE = (
    "llama", "mistral", "mixtral", "ministral", "phi3", "phi4_multimodal", "phimoe", "starcoder2", "moshi", "idefics2",
    "qwen2", "qwen3", "minicpm", "glm4_moe", "deepseek",
)  # fmt: skip
# families that give a window in the file but use it only when told to
_WINDOW_OFF_BY_DEFAULT = ("qwen2", "qwen3")
# attention of window layers has so many times the KV heads of the others, which no key says
_WINDOW_HEADS: Mapping[str, int] = {"mimo_v2_flash": 2}
# two attentions a layer, each with a cache
_TWICE = ("longcat_flash",)
# what one entry of block_configs may say of attention
_BLOCK_KEYS = frozenset({"n_heads_in_group", "num_key_value_heads", "no_op", "replace_with_linear"})


def cache_layers(reader: ConfigReader, count: int) -> int:
    """How many caches ``count`` layers keep."""
    if reader.model_type == "hrm_text":
        # without it a file gives the layers of one stack, and not those of all its cycles
        reader.require("num_layers_per_stack")
    return 2 * count if reader.model_type in _TWICE else count


def layer_kinds(reader: ConfigReader, count: int) -> list[str]:
    """What each layer keeps.

    ``full``, ``window`` and ``chunked`` attention; ``linear`` and ``conv`` with a state that has a formula, ``state``
    with one that has none; ``cross`` (attention to an image), ``shared`` (reads an earlier layer's cache) and ``none``.

    Raises:
        ConfigError: a layer type that the formulas do not cover, or a list of another length than the model.
    """
    listed = reader.per_layer("layer_types", count)
    kinds = _listed(reader, listed) if listed is not None else _inferred(reader, count)
    if not _window_on(reader):
        kinds = ["full" if kind == "window" else kind for kind in kinds]
    for index in reader.items("cross_attention_layers") or ():
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count:
            reader.fail("cross_attention_layers", f"'cross_attention_layers' names the layer {index!r} of {count}")
        kinds[index] = "cross"
    if reader.flag("use_cla"):
        factor = reader.require("cla_share_factor")
        kinds = [kind if index % factor == 0 else "shared" for index, kind in enumerate(kinds)]
    for index, block in enumerate(_blocks(reader, count)):
        if block.get("no_op") or block.get("replace_with_linear"):
            kinds[index] = "none"
    return kinds


def _listed(reader: ConfigReader, listed: Sequence[Any]) -> list[str]:
    for kind in listed:
        if kind not in _LAYER_TYPES:
            raise ConfigError(
                f"the config of {reader.name!r} has the layer type {kind!r} in 'layer_types', for which there is no "
                f"formula here (covered: {', '.join(_LAYER_TYPES)}): no figure rather than a wrong one."
            )
    kinds = [_LAYER_TYPES[kind] for kind in listed]
    # lightning attention, whose state engines keep in types of their own
    return ["state" if kind == "linear" else kind for kind in kinds] if reader.model_type == "minimax" else kinds


def _window_on(reader: ConfigReader) -> bool:
    if "sliding_window" not in reader.values:
        # a list that names window layers then fails with the missing key, instead of counting them as full
        return True
    return reader.flag("use_sliding_window", default=not reader.model_type.startswith(_WINDOW_OFF_BY_DEFAULT))


def _inferred(reader: ConfigReader, count: int) -> list[str]:
    linear = reader.per_layer("attn_type_list", count)
    if linear is not None:
        if any(isinstance(kind, bool) or kind not in (0, 1) for kind in linear):
            reader.fail("attn_type_list", "'attn_type_list' holds something else than 0 (linear) and 1 (full)")
        return ["full" if kind else "state" for kind in linear]
    blocks = reader.items("block_types") or reader.items("_block_types")
    if blocks is not None:
        return _blocked(reader, blocks, count)
    interval = reader.optional("full_attention_interval")
    if interval is not None:
        return _every(interval, count, "linear")
    full_layers = reader.items("full_attn_idxs")
    if full_layers is not None:
        return ["full" if index in full_layers else "conv" for index in range(count)]
    if "attention_chunk_size" in reader.values:
        return _chunked(reader, count)
    return _windows(reader, count)


def _blocked(reader: ConfigReader, blocks: Sequence[Any], count: int) -> list[str]:
    """RecurrentGemma: the blocks repeat over the layers, and attention has a window."""
    names = {"recurrent": "state", "attention": "local" if "attention_window_size" in reader.values else "full"}
    for block in blocks:
        if block not in names:
            reader.fail("block_types", f"there is no formula for the block {block!r}")
    return [names[blocks[index % len(blocks)]] for index in range(count)]


def _windows(reader: ConfigReader, count: int) -> list[str]:
    if "sliding_window" not in reader.values:
        if "sliding_window_size" in reader.values:
            reader.fail("sliding_window_size", "'sliding_window_size' does not say which layers have that window")
        if reader.model_type in _WINDOW_PATTERNS and "sliding_window" not in reader.nulls:
            # such a family has windows: the file leaves their size to the library
            reader.require("sliding_window")
        return ["full"] * count
    pattern: Any = reader.values.get("sliding_window_pattern", reader.values.get("_sliding_window_pattern"))
    if isinstance(pattern, str):
        # EXAONE 4: local and global layers by letter
        if not pattern or set(pattern) - {"L", "G"}:
            reader.fail("sliding_window_pattern", f"'sliding_window_pattern' is {pattern!r}, not letters L and G")
        return ["full" if pattern[index % len(pattern)] == "G" else "window" for index in range(count)]
    interval = reader.optional("sliding_window_pattern", "_sliding_window_pattern")
    interval = interval or _WINDOW_PATTERNS.get(reader.model_type)
    if interval is not None:
        return _every(interval, count, "window")
    if _window_on(reader) and not _everywhere(reader):
        reader.fail("sliding_window", f"which layers have a window is not known of the type {reader.model_type!r}")
    first_window = reader.optional("max_window_layers", minimum=0) or 0
    return ["full" if index < first_window else "window" for index in range(count)]


def _everywhere(reader: ConfigReader) -> bool:
    return not reader.model_type or reader.model_type.startswith(_WINDOW_EVERYWHERE)


def _every(interval: int, count: int, others: str) -> list[str]:
    return ["full" if (index + 1) % interval == 0 else others for index in range(count)]


def _chunked(reader: ConfigReader, count: int) -> list[str]:
    # Llama 4: layers with rotary positions attend within chunks, the others to everything
    listed = reader.per_layer("no_rope_layers", count)
    if listed is None:
        return _every(reader.optional("no_rope_layer_interval") or 4, count, "chunked")
    return ["chunked" if rotary else "full" for rotary in listed]


def _blocks(reader: ConfigReader, count: int) -> list[Mapping[str, Any]]:
    """What pruned models (Nemotron NAS) say of each layer's attention; empty where there is no such list."""
    found = []
    for block in reader.per_layer("block_configs", count) or ():
        attention = block.get("attention") if isinstance(block, Mapping) else None
        if not isinstance(attention, Mapping):
            reader.fail("block_configs", "'block_configs' says nothing of a layer's attention")
        for key, value in attention.items():
            if key not in _BLOCK_KEYS and value not in (None, False):
                reader.fail("block_configs", f"{key!r} in 'block_configs' is not understood here")
        found.append(attention)
    return found


def of_layer(reader: ConfigReader, index: int) -> tuple[ConfigReader, bool]:
    """The config as one layer sees it, and whether the layer has anything of its own (``per_layer_config``)."""
    sections = reader.values.get("per_layer_config")
    if not isinstance(sections, Mapping):
        return reader, False
    for name, own in sections.items():
        # transformers writes layer numbers with leading zeros
        if isinstance(own, Mapping) and str(name).isdecimal() and int(name) == index and own:
            for key in unknown_among(own):
                reader.fail(key, f"{key!r} in 'per_layer_config' may change what the cache holds")
            return ConfigReader(reader.name, {**reader.values, **own}), True
    return reader, False


def stored_heads(reader: ConfigReader, heads: int, kind: str, index: int, count: int) -> int:
    """KV heads of one layer, by the list of them where there is one."""
    for key in ("num_key_value_heads_per_layer", "num_key_value_heads", "num_kv_heads"):
        if isinstance(reader.values.get(key), list):
            reader.per_layer(key, count)
            return reader.counts(key)[index]
    if not any(key in reader.values for key in KV_HEADS):
        for key in HEADS:
            if isinstance(reader.values.get(key), list):
                reader.per_layer(key, count)
                heads = reader.counts(key)[index]
    blocks = _blocks(reader, count)
    if blocks:
        shared = blocks[index].get("n_heads_in_group")
        if shared is None:
            return ConfigReader(reader.name, blocks[index]).require("num_key_value_heads")
        if isinstance(shared, bool) or not isinstance(shared, int) or shared < 1 or heads % shared:
            reader.fail("block_configs", f"'n_heads_in_group' is {shared!r}, and there are {heads} heads")
        return heads // shared
    stored = kv_heads(reader, heads)
    return stored * _WINDOW_HEADS.get(reader.model_type, 1) if kind == "window" else stored
