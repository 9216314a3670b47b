"""Options of the transformers backend."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from niah.engines.base import QUIET, BackendOptions, Day
from niah.engines.threads import default_threads


class TransformersOptions(BackendOptions):
    """Options of the transformers backend.

    Attributes:
        device: ``auto`` takes CUDA, then MPS, then the CPU.
        dtype: compute type; ``auto`` is bf16 where the hardware has it, else fp32 on a CPU and fp16 on a GPU.
        attn: ``auto`` is SDPA where the model allows it, else ``eager``.
        template: ``auto`` uses the model's chat template where it has one, else plain completion.
        date: ISO day that a chat template prints which prints one; None is the same day in every run.
        threads: CPU threads; None is what ``OMP_NUM_THREADS`` says, else the cores of this process.
        prefill_chunk: prompt tokens per forward pass, unless the KV setting says otherwise.
        pack: ``False`` answers each question from a fork of the context's cache instead of all in one sequence.
        oversubscribe: allow more ranks of a ring than this machine has cores.
        yarn_factor: stretch the positions by YaRN (arXiv:2309.00071) to this many times the model's context, in every
            setting and the reference alike.
        trust_remote_code: run code that a model's repository brings along.
        skip_checks: do not compare answers with plain forward passes when a model is used for the first time.
    """

    device: str = "auto"
    dtype: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    attn: Literal["auto", "sdpa", "eager"] = "auto"
    template: Literal["auto", "chat", "completion"] = "auto"
    date: Day | None = Field(default=None, json_schema_extra=QUIET)
    threads: int | None = Field(default=None, ge=1, json_schema_extra=QUIET)
    prefill_chunk: int = Field(default=512, ge=1)
    pack: bool = True
    oversubscribe: bool = Field(default=False, json_schema_extra=QUIET)
    yarn_factor: float | None = Field(default=None, gt=1, json_schema_extra={"since": "0.2"})
    trust_remote_code: bool = False
    revision: str | None = None
    skip_checks: bool = Field(default=False, json_schema_extra=QUIET)

    def thread_count(self) -> int:
        return self.threads or default_threads()
