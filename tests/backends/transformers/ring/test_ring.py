"""The ring equals one rank: logits, packed answers and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from niah.backends.transformers.method import Running, Setting, open_running
from niah.backends.transformers.packed import answer_packed
from niah.backends.transformers.ring.partial import merge, partial_attention
from niah.kv.memory.totals import kv_bytes
from tests.contract.test_methods import _full, fill, ids_of, questions, running
from tests.helpers import tiny_models


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("llama")
    tiny_models.llama().model.save_pretrained(where)
    return where


@pytest.fixture(scope="module", params=[2, 4])
def ring(request: pytest.FixtureRequest, folder: Path) -> Iterator[Running]:
    loaded = tiny_models.llama()
    setting = Setting(loaded, _full(f"ring({request.param})"), tiny_models.shape_of(loaded), str(folder))
    with torch.inference_mode(), open_running(setting) as run:
        yield run


def test_parts_of_the_keys_merge_to_attention_over_all() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 6, 5, 16), torch.randn(1, 2, 40, 16), torch.randn(1, 2, 40, 8)
    seen = torch.rand(5, 40) < 0.5
    seen[:, 0], seen[2, :13] = True, False
    seen[2, 13] = True
    parts = [
        partial_attention(query, key[:, :, part], value[:, :, part], seen[:, part], 0.3)
        for part in (slice(0, 13), slice(13, 14), slice(14, 14), slice(14, 40))
    ]
    expected = scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=0.3, enable_gqa=True)
    assert torch.allclose(merge(parts).out, expected, atol=1e-5)
    assert torch.isneginf(parts[0].lse[:, :, 2]).all(), "a query that sees nothing of a part"


@pytest.mark.parametrize("tokens", [1, 3, 4, 5, 37, 150])
def test_a_ring_equals_one_rank(ring: Running, tokens: int) -> None:
    """Contexts shorter than the ring, of uneven shares, and longer than the share of one rank."""
    with running(tiny_models.llama(), _full("bf16")) as plain:
        _, expected = fill(plain, ids_of(tokens))
    held, logits = fill(ring, ids_of(tokens), chunk=9 * ring.kv.placement.context_parallel)
    assert torch.allclose(logits, expected, atol=1e-4)
    shares = [int(size) for size in ring.effective(held)["kv.ring_bytes_per_rank"].split(", ")]
    total = kv_bytes(ring.shape, ring.kv, tokens)
    assert ring.logical_bytes(held, tokens) == total == sum(shares)
    # each rank has its share of the tokens, rounded up or down
    assert max(shares) - min(shares) <= total // tokens
    assert len(shares) == ring.kv.placement.context_parallel


def test_packed_questions_fork_and_crop_equal_one_rank(ring: Running) -> None:
    context = ids_of(60)
    answers: list[list[tuple[list[int], float]]] = []
    after_crop: list[torch.Tensor] = []
    for run in (ring, None):
        with running(tiny_models.llama(), _full("bf16")) as plain:
            run = run or plain
            held, _ = fill(run, context, chunk=20)
            for target in (run.fork(held), held):
                group = questions(4)
                run.hold(target)

                def forward(
                    ids: list[int], positions: list[int], view: Any, keep: Any, run: Any = run, target: Any = target
                ) -> Any:
                    return run.step(target, ids, positions, view, keep)

                answer_packed(forward, group, 60, run.loaded.ends, run.loaded.device)
                answers.append([(question.output, round(question.logprob, 2)) for question in group])
            run.crop(held, 41)
            after_crop.append(run.prefill(held, ids_of(9, seed=8), 41)[-1])
    assert answers[0] == answers[1] == answers[2] == answers[3]
    ring_logits, plain_logits = after_crop
    assert torch.allclose(ring_logits, plain_logits, atol=1e-4)
