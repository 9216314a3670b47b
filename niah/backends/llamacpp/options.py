"""Options of the llamacpp backend."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from niah.engines.base import QUIET, BackendOptions, Day
from niah.engines.threads import default_threads


class LlamaCppOptions(BackendOptions):
    """Options of the llamacpp backend.

    Attributes:
        threads: CPU threads; None is what ``OMP_NUM_THREADS`` says, else the cores of this process.
        gpu_layers: layers on a GPU, where the engine is built for one; -1 is all that it can place there.
        flash_attn: the same for every KV setting of a run; a quantized value cache needs it.
        swa_full: window layers keep all tokens, so that their cache can be reused from any position; costs memory.
        batch, ubatch: tokens of one prefill step, logical and physical.
        template: ``auto`` uses the model's chat template where it has one, else plain completion.
        date: ISO day that a chat template prints which prints one; None is the same day in every run.
        logprobs: score the expected answer; costs a step per token after the first that the reply does not share with
            it.
        startup_timeout_s: seconds that a start may take.
        request_timeout_s: seconds of silence after which a request is given up; a prefill is silent.
    """

    threads: int | None = Field(default=None, ge=1, json_schema_extra=QUIET)
    gpu_layers: int = Field(default=-1, ge=-1)
    flash_attn: bool = True
    swa_full: bool = False
    batch: int = Field(default=2048, ge=32)
    ubatch: int = Field(default=512, ge=32)
    template: Literal["auto", "chat", "completion"] = "auto"
    date: Day | None = Field(default=None, json_schema_extra=QUIET)
    logprobs: bool = True
    startup_timeout_s: float = Field(default=300.0, gt=0, json_schema_extra=QUIET)
    request_timeout_s: float = Field(default=1800.0, gt=0, json_schema_extra=QUIET)

    def thread_count(self) -> int:
        return self.threads or default_threads()
