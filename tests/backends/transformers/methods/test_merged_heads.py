"""KV heads merged by mean pooling: the GQA paper's first step, and nothing else of the model."""

from __future__ import annotations

import pytest
import torch

from niah.backends.transformers.methods.merged_heads import mean_pooled
from niah.errors import BackendUnavailable
from tests.contract.test_methods import _full, fill, ids_of, running
from tests.helpers import tiny_models


def test_merged_projections_are_means_of_neighbors() -> None:
    projection = torch.nn.Linear(5, 4 * 3)
    merged = mean_pooled(projection, head_dim=3, kv_heads=2)
    weight, bias = projection.weight.detach(), projection.bias.detach()
    assert merged.weight.shape == (6, 5)
    assert torch.allclose(merged.weight[:3], (weight[0:3] + weight[3:6]) / 2)
    assert torch.allclose(merged.weight[3:], (weight[6:9] + weight[9:12]) / 2)
    assert torch.allclose(merged.bias[3:], (bias[6:9] + bias[9:12]) / 2)


@pytest.mark.parametrize("kind", ["llama", "gpt_oss"])
def test_merging_heads_that_are_equal_loses_nothing(kind: str) -> None:
    loaded = getattr(tiny_models, kind)()
    with torch.no_grad():
        for module in loaded.model.modules():
            for projection in (getattr(module, "k_proj", None), getattr(module, "v_proj", None)):
                for whole in projection.parameters() if projection is not None else ():
                    whole.data[32:] = whole.data[:32]
    with running(loaded, _full("bf16")) as run:
        _, plain = fill(run, ids_of(50))
    with running(loaded, _full("mqa")) as run:
        held, merged = fill(run, ids_of(50))
        assert run.layers(held)[0].token_elements() == 64
        assert run.effective(held)["kv.heads"] == "2 merged to 1 by mean pooling, not up-trained"
    assert torch.allclose(plain, merged, atol=1e-4)


def test_merging_heads_that_differ_changes_the_answer() -> None:
    loaded = tiny_models.llama()
    with running(loaded, _full("bf16")) as run:
        _, plain = fill(run, ids_of(50))
    with running(loaded, _full("mqa")) as run:
        _, merged = fill(run, ids_of(50))
    assert not torch.allclose(plain, merged, atol=0.1)


def test_a_model_without_projections_of_its_own_is_refused() -> None:
    with pytest.raises(BackendUnavailable, match="cannot be merged"), running(tiny_models.deepseek(), _full("mqa")):
        pass
