"""Infini-attention against its equations, written down once more token by token."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import elu, scaled_dot_product_attention

from niah.backends.transformers.cache.rotary import Rotary
from niah.backends.transformers.methods.infini import CompressiveMemory, Infini
from tests.contract.test_methods import _full, fill, ids_of, running
from tests.helpers import tiny_models

SEGMENT = 12


def _by_hand(loaded: Any, ids: list[int], gate: float, rule: str) -> torch.Tensor:
    """Logits of the last token, from the paper's equations with no cache: each layer over the whole sequence."""
    rotary, model = Rotary(loaded.model), loaded.model
    states = model.model.embed_tokens(torch.tensor([ids]))
    count = len(ids)
    positions = torch.arange(count)
    for layer in model.model.layers:
        attention = layer.self_attn
        normed = layer.input_layernorm(states)
        plain = [
            projection(normed).view(1, count, -1, 32).transpose(1, 2)
            for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
        ]
        query, key, value = plain[0], *(part.repeat_interleave(3, dim=1) for part in plain[1:])
        turned = [rotary.shift(part, positions, attention) for part in (query, key)]
        memory, norm, out = torch.zeros(1, 6, 32, 32), torch.zeros(1, 6, 32, 1), []
        for start in range(0, count, SEGMENT):
            part = slice(start, min(count, start + SEGMENT))
            local = scaled_dot_product_attention(
                turned[0][:, :, part], turned[1][:, :, part], value[:, :, part], is_causal=True
            )
            asked, known = elu(query[:, :, part]) + 1, elu(key[:, :, part]) + 1
            out.append(local if not start else gate * (asked @ memory) / (asked @ norm) + (1 - gate) * local)
            old = (known @ memory) / (known @ norm) if start and rule == "delta" else 0
            memory = memory + known.transpose(-1, -2) @ (value[:, :, part] - old)
            norm = norm + known.sum(-2).unsqueeze(-1)
        states = states + attention.o_proj(torch.cat(out, dim=2).transpose(1, 2).reshape(1, count, -1))
        states = states + layer.mlp(layer.post_attention_layernorm(states))
    return model.lm_head(model.model.norm(states))[0, -1]


@pytest.mark.parametrize("rule", ["delta", "linear"])
@pytest.mark.parametrize("gate", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("count", [SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT + 5])
def test_the_equations_of_the_paper(rule: str, gate: float, count: int) -> None:
    loaded, ids = tiny_models.llama(), ids_of(count)
    with running(loaded, _full(f"infini({SEGMENT},gate={gate},update={rule})")) as run:
        _, logits = fill(run, ids, chunk=7)
        expected = _by_hand(loaded, ids, gate, rule)
    assert torch.allclose(logits, expected, atol=1e-3)


def test_shorter_than_a_segment_is_plain_attention_and_longer_is_not() -> None:
    loaded = tiny_models.llama()
    for count, same in ((40, True), (41, False)):
        with running(loaded, _full("bf16")) as run:
            _, plain = fill(run, ids_of(count))
        for gate in (0.0, 0.5):
            with running(loaded, _full(f"infini(40,gate={gate})")) as run:
                _, logits = fill(run, ids_of(count))
            assert torch.allclose(logits, plain, atol=1e-4) is same


def test_memory_is_constant_over_lengths() -> None:
    loaded = tiny_models.llama()
    with running(loaded, _full(f"infini({SEGMENT})")) as run:
        sizes = set()
        for count in (SEGMENT, 5 * SEGMENT, 30 * SEGMENT + 3):
            held, _ = fill(run, ids_of(count))
            really = sum(size for layer in run.layers(held) for size in layer.storages().values())
            sizes.add((run.logical_bytes(held, count), really))
        assert len(sizes) == 1
        effective = run.effective(held)
    assert "not trained" in effective["kv.trained"]
    assert "delta" in effective["kv.memory"]


def test_the_delta_rule_does_not_add_what_is_known() -> None:
    """The same segment twice: the linear rule adds it again, the delta rule leaves what is read as it was."""
    torch.manual_seed(0)
    key, value = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 4)
    for rule, expected in (("linear", 2.0), ("delta", 1.0)):
        memory = CompressiveMemory(key, value)
        memory.take(key, value, rule)
        once = memory.matrix.clone()
        memory.take(key, value, rule)
        assert torch.allclose(memory.matrix, expected * once, atol=1e-5)


def test_a_question_leaves_no_trace_in_the_context() -> None:
    loaded = tiny_models.llama()
    with running(loaded, _full(f"infini({SEGMENT})")) as run:
        assert isinstance(run, Infini)
        assert not run.packs
        held, _ = fill(run, ids_of(50))
        before = [layer.memory.matrix.clone() for layer in run.layers(held)]
        run.prefill(run.fork(held), ids_of(3 * SEGMENT, seed=5), 50)
        assert all(torch.equal(a, layer.memory.matrix) for a, layer in zip(before, run.layers(held), strict=True))
        assert not run.can_crop_to(held, 49)
