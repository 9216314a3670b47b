"""Parameters and weight bytes counted from a config: matrices only, norms and most biases are below one percent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from niah.models.hf_config import LAYERS, ConfigReader

# families whose MLP has two matrices; the others gate, with three
_PLAIN_MLP = (
    "gpt2",
    "gpt_bigcode",
    "gptj",
    "gpt_neo",
    "gpt_neox",
    "falcon",
    "phi",
    "opt",
    "bloom",
    "starcoder2",
    "mpt",
)
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
_SIXTEEN_BITS = 16.0
# a block of 32 four-bit elements and one eight-bit scale
_MXFP4_BITS = 4.25


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Parameters by how checkpoints quantize them: embeddings usually not, experts sometimes alone."""

    embedding: int
    dense: int
    experts: int = 0

    @property
    def total(self) -> int:
        return self.embedding + self.dense + self.experts


def count_parameters(
    reader: ConfigReader, heads: int, hidden_size: int, stored: Sequence[tuple[int, int, int]]
) -> ParameterCount | None:
    """Parameters of embeddings, attention and MLP or experts; None when the config does not give them.

    Args:
        stored: (KV heads, K dim, V dim) of the layers that store tokens.
    """
    layers = reader.require(*LAYERS)
    # embeddings per layer, or an MLP that differs from layer to layer (Gemma 3n, 4): no count rather than a wrong one
    if "hidden_size_per_layer_input" in reader.values or isinstance(reader.values.get("intermediate_size"), list):
        return None
    vocabulary = reader.optional("vocab_size", "padded_vocab_size")
    intermediate = reader.optional("intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim")
    if intermediate is None and reader.model_type in _PLAIN_MLP:
        intermediate = 4 * hidden_size
    if vocabulary is None or intermediate is None:
        return None
    tied = reader.flag("tie_word_embeddings", default=True)
    embedding = vocabulary * hidden_size * (1 if tied else 2)
    if reader.optional("kv_lora_rank") is not None:
        attention = layers * _latent_attention(reader, heads, hidden_size)
    else:
        attention = sum(hidden_size * (heads * (k + v) + kv * (k + v)) for kv, k, v in stored)
        attention += (layers - len(stored)) * _other_mixer(reader, heads, hidden_size)
    mlp, experts = _mlp(reader, layers, hidden_size, intermediate)
    return ParameterCount(embedding, attention + mlp, experts)


def _latent_attention(reader: ConfigReader, heads: int, hidden_size: int) -> int:
    rank, rope = reader.require("kv_lora_rank"), reader.require("qk_rope_head_dim")
    nope, value = reader.optional("qk_nope_head_dim") or 0, reader.optional("v_head_dim") or 0
    query_rank = reader.optional("q_lora_rank")
    query_out = heads * (nope + rope)
    query = hidden_size * query_out if query_rank is None else query_rank * (hidden_size + query_out)
    return query + hidden_size * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden_size


def _other_mixer(reader: ConfigReader, heads: int, hidden_size: int) -> int:
    """A layer without a cache of its own: a gated-delta layer, or attention over a shared cache (no K and V)."""
    key_heads, value_heads = reader.optional("linear_num_key_heads"), reader.optional("linear_num_value_heads")
    key_dim, value_dim = reader.optional("linear_key_head_dim"), reader.optional("linear_value_head_dim")
    if key_heads and value_heads and key_dim and value_dim:
        return hidden_size * (2 * key_heads * key_dim + 3 * value_heads * value_dim + 2 * value_heads)
    return 2 * hidden_size * heads * (reader.optional("head_dim") or hidden_size // heads)


def _mlp(reader: ConfigReader, layers: int, hidden_size: int, intermediate: int) -> tuple[int, int]:
    """(dense, expert) parameters of all layers' MLPs."""
    matrices = 2 if reader.model_type in _PLAIN_MLP else 3
    experts = reader.optional(*_EXPERTS)
    dense_layer = matrices * hidden_size * (reader.optional("intermediate_size_mlp") or intermediate)
    if experts is None:
        return layers * dense_layer, 0
    size = reader.optional("moe_intermediate_size") or intermediate
    sparse = _sparse_layers(reader, layers)
    shared = reader.optional("shared_expert_intermediate_size") or 0
    shared += (reader.optional("n_shared_experts", minimum=0) or 0) * size
    router = hidden_size * experts
    dense = (layers - sparse) * dense_layer + sparse * (matrices * hidden_size * shared + router)
    return dense, sparse * experts * matrices * hidden_size * size


def _sparse_layers(reader: ConfigReader, layers: int) -> int:
    """How many layers have experts."""
    step = reader.optional("decoder_sparse_step", "interleave_moe_layer_step") or 1
    first_dense = reader.optional("first_k_dense_replace", minimum=0) or 0
    listed = reader.items("mlp_only_layers") or ()
    return sum(i >= first_dense and (i + 1) % step == 0 and i not in listed for i in range(layers))


def weight_bytes(reader: ConfigReader, counted: ParameterCount | None, published: int | None) -> int | None:
    """Bytes of the weights at the checkpoint's own precision, 16 bit unless it names another; None if unknown."""
    scheme = reader.values.get("quantization_config")
    bits = _stored_bits(scheme) if isinstance(scheme, Mapping) else None
    if bits is None:
        total = published if published is not None else counted.total if counted else None
        return None if total is None else total * 2
    if counted is None:
        return None
    dense_bits, expert_bits = bits
    stored_bits = counted.embedding * _SIXTEEN_BITS + counted.dense * dense_bits + counted.experts * expert_bits
    return round(stored_bits / 8)


def _stored_bits(scheme: Mapping[str, Any]) -> tuple[float, float] | None:
    """(dense, expert) bits of an element, or None for a scheme that is not known here."""
    method = str(scheme.get("quant_method", ""))
    if method == "mxfp4":
        return _SIXTEEN_BITS, _MXFP4_BITS
    if "fp8" in method:
        return 8.0, 8.0
    bits = scheme.get("bits")
    if scheme.get("load_in_4bit") is True:
        bits = 4
    elif scheme.get("load_in_8bit") is True:
        bits = 8
    if isinstance(bits, int) and not isinstance(bits, bool) and 1 <= bits <= 16:
        return float(bits), float(bits)
    return None
