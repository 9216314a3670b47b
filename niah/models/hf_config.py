"""Reading a Hugging Face ``config.json``: typed access, and how model families spell the keys of their shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from niah.errors import ConfigError
from niah.models.config_keys import unknown_among

LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "num_transformer_layers")
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "num_query_heads")
HIDDEN = ("hidden_size", "n_embd", "n_embed", "d_model", "model_dim")
KV_HEADS = (
    "num_key_value_heads",
    "num_kv_heads",
    "n_head_kv",
    "n_kv_heads",
    "multi_query_group_num",
    "num_attention_groups",
    "num_query_groups",
)
HEAD_DIM = ("head_dim", "kv_channels", "attention_head_dim")
CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "max_context_length",
    "seq_length",
    "max_seq_len",
    "max_sequence_length",
    "n_ctx",
)
SECTIONS = ("text_config", "llm_config", "language_config")
# what a nested text section may leave to the file's outer level
_OUTER_KEYS = ("torch_dtype", "dtype", "quantization_config", "tie_word_embeddings", "model_type")

_MULTI_QUERY_BY_DEFAULT = ("falcon", "gpt_bigcode")
# published Gemma 3 files leave these to the library's defaults
_GEMMA3_DEFAULTS: Mapping[str, int] = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262_208,
    "max_position_embeddings": 131_072,
}


@dataclass(frozen=True)
class ConfigReader:
    """A model's text section with typed access; ``values`` holds no nulls, so that null and absent are the same.

    Where they are not, ``nulls`` names the keys that are there and null.
    """

    name: str
    values: Mapping[str, Any]
    nulls: frozenset[str] = frozenset()

    @staticmethod
    def of(config: Mapping[str, Any], name: str) -> ConfigReader:
        """The text section of a config, or the config itself where it is not nested."""
        section = next((config[s] for s in SECTIONS if isinstance(config.get(s), Mapping)), None)
        values: dict[str, Any] = dict(config)
        if section is not None:
            values = {key: config[key] for key in _OUTER_KEYS if key in config}
            values.update({key: value for key, value in section.items() if value is not None})
        stated = config if section is None else section
        nulls = frozenset(key for key, value in stated.items() if value is None)
        values = {key: value for key, value in values.items() if value is not None}
        if values.get("model_type") in ("gemma3", "gemma3_text"):
            values = {**_GEMMA3_DEFAULTS, **values}
        return ConfigReader(name, values, nulls)

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

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            self.fail(key, f"{key!r} is {value!r}, not true or false")
        return value

    def counts(self, key: str) -> list[int]:
        """A list of positive integers."""
        found = self.items(key) or self.fail(key, f"{key!r} is empty")
        for value in found:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                self.fail(key, f"{key!r} holds {value!r}, not a whole number of at least 1")
        return list(found)

    def per_layer(self, key: str, count: int) -> Sequence[Any] | None:
        """As ``items``, for a list that must have one entry a layer."""
        listed = self.items(key)
        if listed is not None and len(listed) != count:
            self.fail(key, f"{key!r} lists {len(listed)} layers, but the model has {count}")
        return listed

    def items(self, key: str) -> Sequence[Any] | None:
        """A list, or None where it is absent or empty."""
        value = self.values.get(key)
        if value is None or value in ([], ()):
            return None
        if isinstance(value, str) or not isinstance(value, Sequence):
            self.fail(key, f"{key!r} is {value!r}, not a list")
        return value


# keys of MPT's and DBRX's section for attention; a window is the model's own where it is positive
_NESTED = frozenset({"attn_type", "kv_n_heads", "attn_uses_sequence_id", "attn_pdrop", "attn_impl", "prefix_lm"})


def query_heads(reader: ConfigReader) -> int:
    """Query heads of a layer; the most where the file has a list of them."""
    for key in HEADS:
        if isinstance(reader.values.get(key), list):
            return max(reader.counts(key))
    return reader.require(*HEADS)


def kv_heads(reader: ConfigReader, heads: int) -> int:
    """KV heads of a layer: 1 for multi-query attention, the attention heads where the file says nothing (MHA)."""
    multi_query = reader.flag("multi_query", default=reader.model_type in _MULTI_QUERY_BY_DEFAULT)
    # newer Falcon files keep multi_query true beside a real number of KV heads
    if multi_query and not reader.flag("new_decoder_architecture"):
        return 1
    nested = reader.values.get("attn_config")
    if isinstance(nested, Mapping):
        return _nested_kv_heads(ConfigReader(reader.name, nested), heads)
    if reader.flag("multi_query_attention"):
        return reader.require("multi_query_group_num", *KV_HEADS)
    # ChatGLM's files state the groups of multi-query attention also where it is off
    off = "multi_query_attention" in reader.values
    stated = reader.optional(*(key for key in KV_HEADS if not (off and key == "multi_query_group_num")))
    if stated is None and "num_attention_heads_per_layer" in reader.values:
        reader.require("num_key_value_heads")
    return stated or heads


def _nested_kv_heads(section: ConfigReader, heads: int) -> int:
    """MPT and DBRX: attention has a section of its own."""
    kind = str(section.values.get("attn_type") or "multihead_attention")
    window = section.values.get("sliding_window_size", -1)
    if window != -1:
        section.fail(
            "sliding_window_size", f"'sliding_window_size' is {window!r} in 'attn_config', as no formula has it"
        )
    for key in unknown_among({k: v for k, v in section.values.items() if k not in _NESTED}):
        section.fail(key, f"{key!r} in 'attn_config' may change what the cache holds and is not understood here")
    if kind == "multiquery_attention":
        return 1
    if kind not in ("multihead_attention", "grouped_query_attention"):
        section.fail("attn_type", f"the attention {kind!r} has no formula here")
    return section.optional("kv_n_heads") or heads


def head_dim(reader: ConfigReader, heads: int, hidden_size: int) -> int:
    """The stated head size, else hidden size / heads, which must divide."""
    stated = reader.optional(*HEAD_DIM)
    if stated is not None:
        return stated
    if any(isinstance(reader.values.get(key), list) and len(set(reader.counts(key))) > 1 for key in HEADS):
        reader.require("head_dim")
    if hidden_size % heads:
        reader.fail("head_dim", f"'head_dim' is missing and {hidden_size} is no multiple of {heads} heads")
    return hidden_size // heads


def native_dtype(reader: ConfigReader) -> str:
    """``fp16`` for float16 checkpoints, else ``bf16`` (also for float32 ones, whose 16-bit cache is bf16)."""
    stated = str(reader.values.get("dtype", reader.values.get("torch_dtype", "")))
    return "fp16" if stated.removeprefix("torch.") in ("float16", "half") else "bf16"
