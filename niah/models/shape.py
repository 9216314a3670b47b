"""``ModelShape``: what of a model decides its KV cache, read from a Hugging Face ``config.json``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from niah.errors import ConfigError
from niah.models.config_context import Stretch, context_of
from niah.models.config_keys import refuse_unknown
from niah.models.config_layers import cache_layers, layer_kinds, of_layer, stored_heads
from niah.models.hf_config import HIDDEN, LAYERS, ConfigReader, head_dim, native_dtype, query_heads
from niah.models.weights import count_parameters, weight_bytes

LayerKind = Literal["full", "window", "chunked", "linear", "shared", "cross", "none"]
_CACHE_BITS_BYTES = 2
_FP32_BYTES = 4


@dataclass(frozen=True, slots=True)
class LayerShape:
    """One layer's cache, for one sequence.

    Attributes:
        kind: ``full`` (every token), ``window`` and ``chunked`` (at most ``window`` tokens), ``linear`` (a constant
            state instead of tokens), ``shared`` (reads another layer's cache, stores nothing), ``cross`` (attends to an
            image, stores nothing of a text), ``none`` (has no attention).
        kv_heads: heads that are stored; 1 for multi-query attention and for MLA.
        k_dim, v_dim: elements of one key and one value; for MLA the latent and the rotary key.
        window: tokens kept by a window layer, or the chunk of a chunked one.
        latent: for MLA the stored elements per token, ``kv_lora_rank + qk_rope_head_dim``; else 0.
        state_bytes: constant state of a linear layer.
        uncounted: what the layer keeps besides, and no formula here counts, in words; empty where there is nothing.
    """

    kind: LayerKind
    kv_heads: int = 0
    k_dim: int = 0
    v_dim: int = 0
    window: int | None = None
    latent: int = 0
    state_bytes: int = 0
    uncounted: str = ""

    @property
    def stores_tokens(self) -> bool:
        """Whether the layer's cache grows with the tokens (up to its window)."""
        return self.kind in ("full", "window", "chunked")

    @property
    def elements(self) -> int:
        """Elements of K and V together, per token."""
        return self.kv_heads * (self.k_dim + self.v_dim)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A model as far as its KV cache goes.

    Attributes:
        layers: one entry a layer, in order.
        heads: query heads.
        parameters: as published, or counted from the config (language model only); None when that is not possible.
        native_dtype: ``bf16`` or ``fp16``, the model's own 16-bit type.
        context_tokens: longest sequence that the config allows, stretched positions included; None when it does not
            say.
        stretch: how the config stretches its positions; None where it does not.
        stored_weight_bytes: weights at the checkpoint's own precision; None when it is not known.
    """

    name: str
    layers: tuple[LayerShape, ...]
    heads: int
    hidden_size: int
    parameters: int | None = None
    native_dtype: str = "bf16"
    context_tokens: int | None = None
    model_type: str = ""
    stored_weight_bytes: int | None = None
    stretch: Stretch | None = None

    @property
    def kv_heads(self) -> tuple[int, ...]:
        """The different numbers of KV heads among layers that store tokens, ascending."""
        return tuple(sorted({layer.kv_heads for layer in self.layers if layer.stores_tokens}))

    @property
    def head_dims(self) -> tuple[int, ...]:
        """The different sizes of K and V heads among layers that store tokens, ascending."""
        stored = [layer for layer in self.layers if layer.stores_tokens]
        return tuple(sorted({layer.k_dim for layer in stored} | {layer.v_dim for layer in stored}))

    @property
    def is_mla(self) -> bool:
        """True when some layer stores a latent instead of keys and values."""
        return any(layer.latent for layer in self.layers)

    @property
    def uncounted(self) -> str:
        """What the figures leave out, as a sentence; empty where they hold everything."""
        kept = Counter(layer.uncounted for layer in self.layers if layer.uncounted)
        return "; ".join(f"not counted: the {what} of {count} layers" for what, count in kept.items())

    @property
    def kind_counts(self) -> dict[str, int]:
        """Layers of each kind."""
        return dict(Counter(layer.kind for layer in self.layers))

    @staticmethod
    def from_config(config: Mapping[str, Any], name: str, parameters: int | None = None) -> ModelShape:
        """The shape that a ``config.json`` describes; vision and audio parts are left out.

        Args:
            config: the file's content; a text section is found in ``text_config``.
            parameters: the published count, when known; else it is counted from the config.

        Raises:
            ConfigError: a key is missing or wrong, or the model keeps a cache for which there is no formula.
        """
        reader = ConfigReader.of(config, name)
        if reader.values.get("is_encoder_decoder") is True:
            raise ConfigError(f"{name!r} is an encoder-decoder model; niah computes caches of decoder-only models.")
        refuse_unknown(name, reader.values)
        heads, hidden_size = query_heads(reader), reader.require(*HIDDEN)
        layers = _layers(reader, heads, hidden_size)
        stores = [layer for layer in layers if layer.stores_tokens]
        context, stretch = context_of(reader)
        counted = None
        if len(layers) == reader.require(*LAYERS) and not any(
            x.uncounted or x.kind in ("cross", "none") for x in layers
        ):
            counted = count_parameters(reader, heads, hidden_size, [(x.kv_heads, x.k_dim, x.v_dim) for x in stores])
        return ModelShape(
            name=name,
            layers=layers,
            heads=heads,
            hidden_size=hidden_size,
            parameters=parameters if parameters is not None else counted.total if counted else None,
            native_dtype=native_dtype(reader),
            context_tokens=context,
            stretch=stretch,
            model_type=reader.model_type,
            stored_weight_bytes=weight_bytes(reader, counted, parameters),
        )

    @staticmethod
    def from_folder(path: Path | str) -> ModelShape:
        """The shape of a local model, from its ``config.json``; the folder's name becomes the model's.

        Raises:
            ConfigError: no readable ``config.json``, or one that ``from_config`` refuses.
        """
        folder = Path(path)
        file = folder / "config.json"
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
        except OSError as err:
            reason = err.strerror or type(err).__name__
            raise ConfigError(
                f"{str(file)!r} cannot be read ({reason}); name a folder with a Hugging Face config.json."
            ) from err
        except ValueError as err:
            raise ConfigError(f"{str(file)!r} is not valid JSON ({err}); download the model's config again.") from err
        if not isinstance(config, dict):
            raise ConfigError(f"{str(file)!r} holds no JSON object; download the model's config again.")
        return ModelShape.from_config(config, folder.resolve().name)


def _layers(reader: ConfigReader, heads: int, hidden_size: int) -> tuple[LayerShape, ...]:
    count = reader.require(*LAYERS)
    shared = reader.optional("num_kv_shared_layers", minimum=0) or 0
    if shared >= count:
        reader.fail("num_kv_shared_layers", f"{shared} of {count} layers share their cache, so that none has one")
    kinds = layer_kinds(reader, count)
    # Gemma 3n and 4: the last layers read the cache of an earlier layer of their kind
    kinds[count - shared :] = ["shared"] * shared
    layers = [_layer(reader, kind, index, heads, hidden_size) for index, kind in enumerate(kinds)]
    return tuple(layer for layer in layers for _ in range(cache_layers(reader, count) // count))


def _layer(reader: ConfigReader, kind: str, index: int, heads: int, hidden_size: int) -> LayerShape:
    match kind:
        case "shared" | "cross" | "none":
            return LayerShape(kind)
        case "linear":
            return LayerShape("linear", state_bytes=_delta_state_bytes(reader))
        case "conv":
            return LayerShape("linear", state_bytes=hidden_size * reader.require("conv_L_cache") * _CACHE_BITS_BYTES)
        case "state":
            return LayerShape("linear", uncounted="constant state")
        case _:
            return _attention(reader, kind, index, heads, hidden_size)


_LIMITS: Mapping[str, tuple[LayerKind, str]] = {
    "window": ("window", "sliding_window"),
    "local": ("window", "attention_window_size"),
    "chunked": ("chunked", "attention_chunk_size"),
}


def _attention(reader: ConfigReader, kind: str, index: int, heads: int, hidden_size: int) -> LayerShape:
    count = reader.require(*LAYERS)
    reader, has_own = of_layer(reader, index)
    layer_kind, key = _LIMITS.get(kind, ("full", ""))
    window = reader.require(key) if key else None
    rank = reader.optional("kv_lora_rank")
    if rank is not None:
        rope = reader.require("qk_rope_head_dim")
        return LayerShape(layer_kind, 1, rank, rope, window, latent=rank + rope)
    stored, k_dim = stored_heads(reader, heads, kind, index, count), head_dim(reader, heads, hidden_size)
    if kind == "full" and not has_own:
        # Gemma 4: full layers may have larger heads, and fewer of them where keys serve as values
        k_dim = reader.optional("global_head_dim") or k_dim
        if reader.flag("attention_k_eq_v"):
            stored = reader.optional("num_global_key_value_heads") or stored
    return LayerShape(layer_kind, stored, k_dim, reader.optional("v_head_dim") or k_dim, window)


def _delta_state_bytes(reader: ConfigReader) -> int:
    """Gated-delta layer: an fp32 state ``value heads · key dim · value dim`` and 16-bit inputs of its convolution."""
    key_heads, value_heads = reader.require("linear_num_key_heads"), reader.require("linear_num_value_heads")
    key_dim, value_dim = reader.require("linear_key_head_dim"), reader.require("linear_value_head_dim")
    channels = 2 * key_heads * key_dim + value_heads * value_dim
    convolution = channels * reader.require("linear_conv_kernel_dim") * _CACHE_BITS_BYTES
    return value_heads * key_dim * value_dim * _FP32_BYTES + convolution
