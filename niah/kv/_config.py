"""Reading a Hugging Face ``config.json``: how model families spell their keys, and what cache each layer keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from niah.errors import ConfigError

LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
HIDDEN = ("hidden_size", "n_embd", "d_model")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
HEAD_DIM = ("head_dim", "kv_channels")
CONTEXT = ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len", "n_ctx")
SECTIONS = ("text_config", "llm_config", "language_config")
# what a nested text section may leave to the file's outer level
_OUTER_KEYS = ("torch_dtype", "dtype", "quantization_config", "tie_word_embeddings", "model_type")

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
    "cohere2": 4,
    "gemma3n_text": 5,
    "gemma3": 6,
    "gemma3_text": 6,
    "gemma4_text": 6,
}
# families that give a window in the file but use it only when told to
_WINDOW_OFF_BY_DEFAULT = ("qwen2", "qwen3")
_MULTI_QUERY_BY_DEFAULT = ("falcon", "gpt_bigcode")
# published Gemma 3 files leave these to the library's defaults
_GEMMA3_DEFAULTS: Mapping[str, int] = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262_208,
    "max_position_embeddings": 131_072,
}
# caches that the formulas here do not describe: better no number than a wrong one
_NOT_COVERED: Mapping[str, str] = {
    "attn_layer_period": "state-space layers",
    "attn_layer_indices": "state-space layers",
    "hybrid_override_pattern": "state-space layers",
    "mamba_d_state": "state-space layers",
    "ssm_cfg": "state-space layers",
    "ssm_state_size": "state-space layers",
    "state_size": "state-space layers",
    "hybrid_layer_pattern": "windows in a pattern of its own",
    "index_topk": "an indexer's own keys, which engines store in different ways",
}


@dataclass(frozen=True)
class ConfigReader:
    """A model's text section with typed access; ``values`` holds no nulls, so that null and absent are the same."""

    name: str
    values: Mapping[str, Any]

    @staticmethod
    def of(config: Mapping[str, Any], name: str) -> ConfigReader:
        """The text section of a config, or the config itself where it is not nested."""
        section = next((config[s] for s in SECTIONS if isinstance(config.get(s), Mapping)), None)
        values: dict[str, Any] = dict(config)
        if section is not None:
            values = {key: config[key] for key in _OUTER_KEYS if key in config}
            values.update({key: value for key, value in section.items() if value is not None})
        values = {key: value for key, value in values.items() if value is not None}
        if values.get("model_type") in ("gemma3", "gemma3_text"):
            values = {**_GEMMA3_DEFAULTS, **values}
        return ConfigReader(name, values)

    @property
    def model_type(self) -> str:
        return str(self.values.get("model_type", ""))

    def fail(self, key: str, reason: str) -> NoReturn:
        raise ConfigError(f"the config of {self.name!r}: {reason}; correct {key!r} or name another model.")

    def require(self, *keys: str) -> int:
        """The first of ``keys`` that is there, a positive integer.

        Raises:
            ConfigError: none is there, or its value is not a positive integer.
        """
        found = self.optional(*keys)
        if found is None:
            raise ConfigError(
                f"the config of {self.name!r} has no {keys[0]!r}: without it the KV cache cannot be computed; "
                "give a complete config.json or a built-in model name."
            )
        return found

    def optional(self, *keys: str, minimum: int = 1) -> int | None:
        """As ``require``, but None where no key is there."""
        for key in keys:
            if key not in self.values:
                continue
            value = self.values[key]
            if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
                self.fail(key, f"{key!r} is {value!r}, not a whole number of at least {minimum}")
            return value
        return None

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            self.fail(key, f"{key!r} is {value!r}, not true or false")
        return value

    def items(self, key: str) -> Sequence[Any] | None:
        """A list, or None where it is absent or empty."""
        value = self.values.get(key)
        if value is None or value in ([], ()):
            return None
        if isinstance(value, str) or not isinstance(value, Sequence):
            self.fail(key, f"{key!r} is {value!r}, not a list")
        return value


def kv_heads(reader: ConfigReader, heads: int) -> int:
    """KV heads of a layer: 1 for multi-query attention, the attention heads where the file says nothing (MHA)."""
    multi_query = reader.flag("multi_query", reader.model_type in _MULTI_QUERY_BY_DEFAULT)
    # newer Falcon files keep multi_query true beside a real number of KV heads
    if multi_query and not reader.flag("new_decoder_architecture", False):
        return 1
    nested = reader.values.get("attn_config")
    if isinstance(nested, Mapping) and "kv_n_heads" in nested:
        return ConfigReader(reader.name, nested).require("kv_n_heads")
    return reader.optional(*KV_HEADS) or heads


def head_dim(reader: ConfigReader, heads: int, hidden_size: int) -> int:
    """The stated head size, else hidden size / heads, which must divide."""
    stated = reader.optional(*HEAD_DIM)
    if stated is not None:
        return stated
    if hidden_size % heads:
        reader.fail("head_dim", f"'head_dim' is missing and {hidden_size} is no multiple of {heads} heads")
    return hidden_size // heads


def native_dtype(reader: ConfigReader) -> str:
    """``fp16`` for float16 checkpoints, else ``bf16`` (also for float32 ones, whose 16-bit cache is bf16)."""
    stated = str(reader.values.get("dtype", reader.values.get("torch_dtype", "")))
    return "fp16" if stated.removeprefix("torch.") in ("float16", "half") else "bf16"


def layer_kinds(reader: ConfigReader, count: int) -> list[str]:
    """``full``, ``window``, ``chunked``, ``linear`` or ``conv`` for each layer, by list or by the family's rule.

    Raises:
        ConfigError: a layer type that the formulas do not cover, or a list of another length than the model.
    """
    for key, what in _NOT_COVERED.items():
        if key in reader.values:
            raise ConfigError(
                f"the config of {reader.name!r} has {key!r}: its cache holds {what}, "
                "for which there is no formula here; measure it with niah run instead."
            )
    listed = reader.items("layer_types")
    kinds = _listed(reader, listed, count) if listed is not None else _inferred(reader, count)
    return kinds if _window_on(reader) else ["full" if kind == "window" else kind for kind in kinds]


def _listed(reader: ConfigReader, listed: Sequence[Any], count: int) -> list[str]:
    if len(listed) != count:
        reader.fail("layer_types", f"'layer_types' lists {len(listed)} layers, but the model has {count}")
    for kind in listed:
        if kind not in _LAYER_TYPES:
            raise ConfigError(
                f"the config of {reader.name!r} has the layer type {kind!r} in 'layer_types', for which there is no "
                f"formula here (covered: {', '.join(_LAYER_TYPES)}); measure it with niah run instead."
            )
    return [_LAYER_TYPES[kind] for kind in listed]


def _window_on(reader: ConfigReader) -> bool:
    if "sliding_window" not in reader.values:
        # a list that names window layers then fails with the missing key, instead of counting them as full
        return True
    return reader.flag("use_sliding_window", not reader.model_type.startswith(_WINDOW_OFF_BY_DEFAULT))


def _inferred(reader: ConfigReader, count: int) -> list[str]:
    interval = reader.optional("full_attention_interval")
    if interval is not None:
        return _every(interval, count, "linear")
    full_layers = reader.items("full_attn_idxs")
    if full_layers is not None:
        return ["full" if index in full_layers else "conv" for index in range(count)]
    if "attention_chunk_size" in reader.values:
        return _chunked(reader, count)
    if "sliding_window" not in reader.values:
        return ["full"] * count
    pattern = reader.optional("sliding_window_pattern", "_sliding_window_pattern")
    pattern = pattern or _WINDOW_PATTERNS.get(reader.model_type)
    if pattern is not None:
        return _every(pattern, count, "window")
    first_window = reader.optional("max_window_layers", minimum=0) or 0
    return ["full" if index < first_window else "window" for index in range(count)]


def _every(interval: int, count: int, others: str) -> list[str]:
    return ["full" if (index + 1) % interval == 0 else others for index in range(count)]


def _chunked(reader: ConfigReader, count: int) -> list[str]:
    # Llama 4: layers with rotary positions attend within chunks, the others to everything
    listed = reader.items("no_rope_layers")
    if listed is None:
        return _every(reader.optional("no_rope_layer_interval") or 4, count, "chunked")
    if len(listed) != count:
        reader.fail("no_rope_layers", f"'no_rope_layers' lists {len(listed)} layers, but the model has {count}")
    return ["chunked" if rotary else "full" for rotary in listed]
