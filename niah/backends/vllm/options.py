"""Options of the vllm backend."""

from __future__ import annotations

from niah.engines.vllm.arguments import VllmEngineOptions


class VllmOptions(VllmEngineOptions):
    """Options of the vllm backend: those of its engine."""
