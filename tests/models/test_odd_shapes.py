"""Keys that few families have: each is counted by hand, or refused; what says nothing of the cache refuses nothing."""

from __future__ import annotations

from typing import Any

import pytest

from niah.errors import ConfigError
from niah.models.shape import ModelShape

BASE = {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100, "intermediate_size": 64}


def _shape(**changes: Any) -> ModelShape:
    return ModelShape.from_config({key: value for key, value in (BASE | changes).items() if value != "absent"}, "odd")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        # layers that run several times, with a cache each time: Ouro (total_ut_steps), looped and recursive models
        ({"num_attention_heads": 4, "total_ut_steps": 4}, "total_ut_steps"),
        ({"num_attention_heads": 4, "num_loops": 3}, "num_loops"),
        ({"num_attention_heads": 4, "recursion_depth": 3}, "recursion_depth"),
        ({"num_attention_heads": 4, "n_cycles": 3}, "n_cycles"),
        ({"model_type": "hrm_text", "num_attention_heads": 4, "H_cycles": 2, "L_cycles": 3}, "num_layers_per_stack"),
        # heads that differ, and nothing that says how large they are or how many are stored
        ({"num_attention_heads": [4, 8]}, "head_dim"),
        ({"num_attention_heads": 4, "num_attention_heads_per_layer": [4, 8]}, "num_key_value_heads"),
    ],
)
def test_what_would_be_counted_wrongly_is_refused(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        _shape(**changes)


def test_heads_of_each_layer_where_all_are_stored() -> None:
    layers = _shape(num_attention_heads=[4, 8], head_dim=16).layers
    assert [(layer.kv_heads, layer.k_dim) for layer in layers] == [(4, 16), (8, 16)]


def test_chatglm_states_groups_also_where_it_has_none() -> None:
    file = {"model_type": "chatglm", "num_attention_heads": 4, "multi_query_group_num": 1}
    assert _shape(**file, multi_query_attention=False).kv_heads == (4,)
    assert _shape(**file, multi_query_attention=True).kv_heads == (1,)


def test_bloom_files_that_state_their_size_as_n_embed() -> None:
    """BLOOM 7B1: 2 × 30 layers × 32 heads × 128 elements × 2 bytes a token."""
    shape = _shape(model_type="bloom", hidden_size="absent", n_embed=4096, n_head=32, n_layer=30, num_hidden_layers=30)
    assert sum(layer.elements for layer in shape.layers) * 2 == 2 * 30 * 32 * 128 * 2


@pytest.mark.parametrize(
    "said",
    [
        {"normalization_layer_name": "rms_norm", "normalize_qk_projections": True},
        {"max_attn_value": 30.0, "attn_output_multiplier": 0.08},
        {"dual_chunk_attention_config": {"chunk_size": 262_144, "local_size": 8192}},
        {"model_type": "ernie4_5", "compression_ratio": 1.0},
    ],
)
def test_published_keys_that_leave_the_cache_as_it_is(said: dict[str, Any]) -> None:
    assert _shape(num_attention_heads=4, num_key_value_heads=2, **said).kv_heads == (2,)


def test_gemma_3_stretched_otherwise_than_its_files_are() -> None:
    """Its own files have linear scaling and the stretched length; a dynamic kind starts from the stated one."""
    file = {"model_type": "gemma3_text", "num_attention_heads": 4, "sliding_window": 256}
    for kind, expected in (("linear", 512), ("dynamic", 2048)):
        rope = {"full_attention": {"rope_type": kind, "factor": 4.0}, "sliding_attention": {"rope_type": "default"}}
        assert _shape(**file, max_position_embeddings=512, rope_parameters=rope).context_tokens == expected
