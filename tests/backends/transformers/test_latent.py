"""MLA: the latent is what is stored; a release that stores what it expands to is found out."""

from __future__ import annotations

from typing import Any

import torch

from niah.kv.grammar import parse_one
from niah.kv.memory.totals import kv_bytes
from tests.contract.test_methods import fill, ids_of, running
from tests.helpers import tiny_models

TOKENS = 70


def test_the_latent_is_stored_and_measured() -> None:
    """576 elements of 2 bytes per token and layer, with the dimensions of DeepSeek-V2 and V3."""
    loaded = tiny_models.deepseek()
    with running(loaded, parse_one("bf16")) as run:
        held, _ = fill(run, ids_of(TOKENS))
        assert run.logical_bytes(held, TOKENS) == (512 + 64) * 2 * 2 * TOKENS
        assert run.logical_bytes(held, TOKENS) == kv_bytes(run.shape, parse_one("bf16"), TOKENS)
        assert run.effective(held)["kv.latent"] == "stored: 576 elements a token"


def test_a_release_that_expands_the_latent_is_reported() -> None:
    """Older releases and models' own code store keys and values of every head; the bytes measured are theirs."""
    loaded = tiny_models.deepseek()
    for module in loaded.model.modules():
        if hasattr(module, "expand_kv"):
            _expand_before_storing(module)
    with running(loaded, parse_one("bf16")) as run:
        held, logits = fill(run, ids_of(TOKENS))
        # 4 heads of 32 + 64 elements of key and 32 of value
        assert run.logical_bytes(held, TOKENS) == 4 * (32 + 64 + 32) * 2 * 2 * TOKENS
        said = run.effective(held)["kv.latent"]
    assert said == "expanded by this version of transformers: 512 elements a token instead of 576"
    assert torch.isfinite(logits).all()


def _expand_before_storing(module: Any) -> None:
    forward, expand = module.forward, module.expand_kv

    class Expanding:
        def __init__(self, cache: Any) -> None:
            self.cache = cache

        def update(self, latent: Any, rotary: Any, layer: Any, **more: Any) -> Any:
            return self.cache.update(*expand(latent, rotary), layer, **more)

    module.forward = lambda *args, cache, **more: forward(*args, cache=Expanding(cache), **more)
    module.expand_kv = lambda key, value: (key, value)


def test_hybrid_models_are_measured_by_kind_of_layer() -> None:
    for kind, full, window in (("gemma3", 2, 4), ("gpt_oss", 2, 2)):
        loaded = getattr(tiny_models, kind)()
        with running(loaded, parse_one("bf16")) as run:
            held, _ = fill(run, ids_of(TOKENS))
            effective = run.effective(held)
            per_token = run.shape.layers[0].elements * 2
            assert effective["kv.full_layers"] == f"{full} with {full * per_token * TOKENS} B for {TOKENS} tokens"
            assert effective["kv.window_layers"] == f"{window} with {window * per_token * 24} B for {TOKENS} tokens"
