"""``Rotary``: moves rotated queries and keys to other positions, for StreamingLLM and Infini-attention.

Rotary embedding (arXiv:2104.09864) turns pairs of elements by ``position · frequency``; turning once more by
``shift · frequency`` gives the vector of ``position + shift``. The frequencies are the model's own.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import torch

from niah.errors import BackendUnavailable

_PROBE_TOLERANCE = 1e-3


class Rotary:
    """The rotary embedding of a loaded model.

    Raises:
        BackendUnavailable: the model has none, or turning twice does not equal turning once by the sum.
    """

    def __init__(self, model: Any) -> None:
        modules = list(model.modules())
        embeddings = [m.rotary_emb for m in modules if hasattr(m, "rotary_emb")]
        attention = next((m for m in modules if hasattr(m, "layer_idx") and hasattr(m, "q_proj")), None)
        apply = getattr(sys.modules[type(attention).__module__], "apply_rotary_pos_emb", None)
        head_dim = getattr(attention, "head_dim", None)
        if not embeddings or apply is None or head_dim is None:
            raise BackendUnavailable(f"{type(model).__name__} has no rotary embedding that niah can apply again.")
        self._embedding, self._apply = embeddings[0], apply
        self._takes_kind = "layer_type" in inspect.signature(self._embedding.forward).parameters
        self._probe(model, int(head_dim))

    def shift(self, states: torch.Tensor, shift: torch.Tensor, module: Any) -> torch.Tensor:
        """``states [batch, heads, tokens, head_dim]`` moved by ``shift [tokens]`` positions, in their own dtype."""
        cos, sin = self._cos_sin(states, shift, module)
        unit = self._cos_sin(states, torch.zeros_like(shift[:1]), module)[0].flatten()[0]
        # YaRN scales cos and sin, and the states carry that factor already
        moved, _ = self._apply(states.float(), states.float(), cos / unit, sin / unit)
        return moved.to(states.dtype)  # type: ignore[no-any-return]

    def _cos_sin(self, states: torch.Tensor, positions: torch.Tensor, module: Any) -> tuple[torch.Tensor, torch.Tensor]:
        arguments = (module.layer_type,) if self._takes_kind else ()
        wanted: tuple[torch.Tensor, torch.Tensor] = self._embedding(
            states.new_empty(1, dtype=torch.float32), positions[None], *arguments
        )
        return wanted

    def _probe(self, model: Any, head_dim: int) -> None:
        device = next(model.parameters()).device
        states = torch.randn(1, 1, 3, head_dim, generator=torch.Generator().manual_seed(0)).to(device)
        first, second = torch.tensor([1, 7, 30], device=device), torch.tensor([40, -5, 90], device=device)
        for module in (m for m in model.modules() if hasattr(m, "layer_idx") and hasattr(m, "q_proj")):
            try:
                once = self._turned(states, first + second, module)
                twice = self.shift(self._turned(states, first, module), second, module)
            except (RuntimeError, TypeError) as err:
                raise BackendUnavailable(f"the rotary embedding of this model cannot be applied again: {err}") from err
            if not torch.allclose(once, twice, atol=_PROBE_TOLERANCE):
                raise BackendUnavailable(
                    "rotating twice differs from rotating once by the sum with this model's rotary embedding."
                )

    def _turned(self, states: torch.Tensor, positions: torch.Tensor, module: Any) -> torch.Tensor:
        cos, sin = self._cos_sin(states, positions, module)
        turned: torch.Tensor = self._apply(states, states, cos, sin)[0]
        return turned
