"""A model whose answers are not those of a plain pass ends the run; one that was checked is not checked again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPTNeoConfig, GPTNeoForCausalLM

from niah.backends.transformers import model_check as _model_check
from niah.backends.transformers.length_dependent_rope import LengthDependentRope
from niah.backends.transformers.load import LoadedModel
from niah.backends.transformers.model_check import SwitchLengths, check_model, compare, context_lengths, switch_lengths
from niah.backends.transformers.options import TransformersOptions
from niah.engines.base import ModelInfo
from niah.errors import BackendUnavailable
from niah.prompts.tokens import COMPLETION, WordTokenizer
from tests.backends.transformers.test_length_dependent_rope import SWITCH, longrope
from tests.helpers import tiny_models

OPTIONS = TransformersOptions(threads=1)


def _info(loaded: LoadedModel, revision: str = "local:1") -> ModelInfo:
    shape = replace(tiny_models.shape_of(loaded), context_tokens=512)
    return ModelInfo("tiny", "", revision, WordTokenizer(), COMPLETION, shape=shape)


@pytest.mark.parametrize("kind", sorted(tiny_models.ALL))
def test_sound_models_pass(kind: str) -> None:
    loaded = tiny_models.ALL[kind]()
    found = compare(loaded, _info(loaded), OPTIONS, (30, 60))
    assert found.widest_nats < 1e-3
    assert found.dtype == "float32"


def _late(step: Callable[..., Any]) -> Callable[..., Any]:
    """Positions as a model counts them that takes a token's slot for its position."""

    def counted(ids: list[int], positions: list[int], cache: Any, mask: Any = None, keep: Any = None) -> Any:
        first = cache.get_seq_length()
        return step(ids, list(range(first, first + len(positions))), cache, mask, keep)

    return counted


def _blind(step: Callable[..., Any]) -> Callable[..., Any]:
    """A model that ignores which question a token belongs to."""

    def all_seen(ids: list[int], positions: list[int], cache: Any, mask: Any = None, keep: Any = None) -> Any:
        def causal(window: int | None) -> torch.Tensor:
            own = mask(window)
            return torch.ones_like(own).tril(own.shape[1] - own.shape[0])

        return step(ids, positions, cache, None if mask is None else causal, keep)

    return all_seen


@pytest.mark.parametrize("fault", [_late, _blind])
def test_a_fault_ends_the_run_with_both_numbers(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny_models.llama()
    step = LoadedModel.step

    def faulty(self: LoadedModel, *args: Any, **kwargs: Any) -> torch.Tensor:
        found: torch.Tensor = fault(lambda *a: step(self, *a))(*args, **kwargs)
        return found

    monkeypatch.setattr(LoadedModel, "step", faulty)
    with pytest.raises(BackendUnavailable, match=r"is -\d+\.\d{4}, and in a plain forward pass -\d+\.\d{4}") as caught:
        compare(loaded, _info(loaded), OPTIONS, (96,))
    assert caught.value.exit_code == 4
    assert "family 'llama'" in str(caught.value)
    assert "backend.skip_checks=true" in str(caught.value)


def test_a_frequency_that_is_not_held_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was wrong with Phi-3 before: chunks below the switch turned by the short factors, later ones by the long."""
    from contextlib import nullcontext

    loaded = longrope()
    shape = _info(loaded).shape
    assert shape is not None
    contexts = context_lengths(shape, switch_lengths(loaded), 256)
    assert any(tokens < SWITCH for tokens in contexts)
    assert any(tokens > SWITCH for tokens in contexts)
    assert compare(loaded, _info(loaded), OPTIONS, contexts).widest_nats < 1e-3
    monkeypatch.setattr(LengthDependentRope, "at", lambda *_: nullcontext())
    with pytest.raises(BackendUnavailable, match="plain forward pass"):
        compare(loaded, _info(loaded), OPTIONS, contexts)


def test_both_sides_of_windows_within_the_run() -> None:
    loaded = tiny_models.gemma3()
    shape, rope = _info(loaded).shape, SwitchLengths()
    assert shape is not None
    windows = replace(
        shape, layers=tuple(replace(x, window=300) if x.window else x for x in shape.layers), context_tokens=4096
    )
    assert context_lengths(windows, rope, 1024) == (96, 324)
    assert context_lengths(windows, rope, 256) == (96,), "nothing beyond what the run asks"
    assert context_lengths(shape, rope, 512) == (12, 48, 96)
    assert context_lengths(shape, rope, 60) == (12,)


def test_a_window_that_the_shape_does_not_tell_is_looked_at() -> None:
    """GPT-Neo's local layers keep all keys and mask them by slots: only behind the window are answers others."""
    config = GPTNeoConfig(
        vocab_size=tiny_models.VOCABULARY,
        hidden_size=96,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        window_size=200,
        max_position_embeddings=512,
        bos_token_id=1,
        eos_token_id=2,
    )
    loaded = tiny_models.made_ready(GPTNeoForCausalLM, config, attention="eager")
    info = _info(loaded)
    assert info.shape is not None
    assert all(layer.window is None for layer in info.shape.layers)
    assert 200 in switch_lengths(loaded).attention
    contexts = context_lengths(info.shape, switch_lengths(loaded), 512)
    assert 224 in contexts
    assert compare(loaded, info, OPTIONS, (96,)).widest_nats < 1e-3
    with pytest.raises(BackendUnavailable, match="plain forward pass"):
        compare(loaded, info, OPTIONS, contexts)


def test_it_costs_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NIAH_CACHE", str(tmp_path))
    loaded = tiny_models.llama()
    said = check_model(loaded, _info(loaded), OPTIONS, 128)
    assert "packed answers equal plain passes within" in said

    def never(*_: Any) -> Any:
        raise AssertionError("checked again")

    monkeypatch.setattr(_model_check, "compare", never)
    assert check_model(loaded, _info(loaded), OPTIONS, 128) == said
    with pytest.raises(AssertionError, match="checked again"):
        check_model(loaded, _info(loaded, "local:2"), OPTIONS, 128)
    for file in tmp_path.rglob("*.json"):
        file.write_text("{", encoding="utf-8")
    with pytest.raises(AssertionError, match="checked again"):
        check_model(loaded, _info(loaded), OPTIONS, 128)


def test_a_check_that_was_left_out_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_model_check, "compare", lambda *_: pytest.fail("asked"))
    loaded = tiny_models.llama()
    said = check_model(loaded, _info(loaded), TransformersOptions(skip_checks=True), 128)
    assert said.startswith("skipped")
    assert TransformersOptions(skip_checks=True).identity() == TransformersOptions().identity()


def test_a_cache_that_cannot_be_written_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("NIAH_CACHE", str(tmp_path / "file"))
    loaded = tiny_models.llama()
    assert "within" in check_model(loaded, _info(loaded), OPTIONS, 128)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_and_buffers_are_as_before(dtype: torch.dtype) -> None:
    loaded = tiny_models.llama(dtype)
    before = {name: tensor.clone() for name, tensor in loaded.model.state_dict().items()}
    kinds = [tensor.dtype for tensor in (*loaded.model.parameters(), *loaded.model.buffers())]
    assert compare(loaded, _info(loaded), OPTIONS, (40,)).dtype == "float32"
    assert [tensor.dtype for tensor in (*loaded.model.parameters(), *loaded.model.buffers())] == kinds
    assert all(torch.equal(before[name], tensor) for name, tensor in loaded.model.state_dict().items())
