"""``LengthDependentRope``: fixes rotary frequencies that depend on the sequence length at one length.

Two kinds of transformers' rotary embeddings look at the largest position of each forward pass
(``modeling_rope_utils.py``): ``longrope`` (arXiv:2402.13753; Phi-3) takes long factors beyond
``original_max_position_embeddings`` and short ones below, ``dynamic`` (NTK) stretches its base with every further
token. A prompt that is processed in chunks, or that extends a cached shorter one, would be rotated by other frequencies
than the same prompt in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

# a rope type for which embeddings do not update their frequencies
_HELD = "held"


class LengthDependentRope:
    """The embeddings of a loaded model whose frequencies depend on the length; none for most models."""

    def __init__(self, model: Any) -> None:
        modules = [module for module in model.modules() if hasattr(module, "rope_type") and hasattr(module, "config")]
        self._modules = [module for module in modules if any(map(_depends, _kinds(module).values()))]

    def __bool__(self) -> bool:
        return bool(self._modules)

    @property
    def switches(self) -> tuple[int, ...]:
        """Lengths in tokens beyond which frequencies change, ascending."""
        found = {limit for module in self._modules for limit, _ in _limits(module)}
        return tuple(sorted(found))

    def key(self, tokens: int) -> tuple[int, ...]:
        """A key of the frequencies for a sequence of ``tokens``: equal keys mean equal frequencies."""
        key = []
        for module in self._modules:
            for limit, is_dynamic in _limits(module):
                key.append(0 if tokens <= limit else tokens if is_dynamic else 1)
        return tuple(key)

    @contextmanager
    def at(self, tokens: int) -> Iterator[None]:
        """Use the frequencies of a sequence of ``tokens``, whatever positions a pass has."""
        before = [(module, module.rope_type) for module in self._modules]
        try:
            for module in self._modules:
                # length 0 first: a dynamic embedding otherwise keeps the frequencies of the longest sequence so far
                for last in (0, max(0, tokens - 1)):
                    _update(module, last)
                module.rope_type = _held(module.rope_type)
            yield
        finally:
            for module, kind in before:
                module.rope_type = kind


def _kinds(module: Any) -> Mapping[str | None, str]:
    """Kinds of rotary embedding by layer type; one without a name where all layers share it."""
    kind = module.rope_type
    return dict(kind) if isinstance(kind, Mapping) else {None: str(kind)}


def _depends(kind: str) -> bool:
    return "dynamic" in kind or kind == "longrope"


def _held(kind: Any) -> Any:
    return dict.fromkeys(kind, _HELD) if isinstance(kind, Mapping) else _HELD


def _limits(module: Any) -> Iterator[tuple[int, bool]]:
    """(longest sequence with the short frequencies, whether each further token changes them) of each dependent kind."""
    for layer_type, kind in _kinds(module).items():
        if not _depends(kind):
            continue
        if "dynamic" in kind:
            yield int(module.original_max_seq_len), True
            continue
        parameters = module.config.rope_parameters
        own = parameters[layer_type] if layer_type is not None else parameters
        yield int(own["original_max_position_embeddings"]), False


def _update(module: Any, last: int) -> None:
    """Let the embedding choose its frequencies as for a pass whose largest position is ``last``."""
    device = module.inv_freq.device if hasattr(module, "inv_freq") else next(module.buffers()).device
    states = torch.empty(1, device=device)
    positions = torch.tensor([[last]], device=device)
    for layer_type in _kinds(module):
        module(states, positions, *(() if layer_type is None else (layer_type,)))


def restart(model: Any) -> None:
    """Reset dynamic embeddings to their initial frequencies, as in a newly loaded model."""
    for module in LengthDependentRope(model)._modules:  # noqa: SLF001
        _update(module, 0)
