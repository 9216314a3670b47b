"""Options of the anthropic backend."""

from __future__ import annotations

from pydantic import model_validator

from niah.engines.hosted.options import BatchOptions

# the least budget that the API takes for extended thinking
LEAST_THINKING_TOKENS = 1024


class AnthropicOptions(BatchOptions):
    """Options of the anthropic backend: those of every API. ``base_url`` is without ``/v1``.

    ``temperature`` goes to Anthropic itself only when it is set: its newer models refuse one.
    """

    @model_validator(mode="after")
    def _thinks_enough(self) -> AnthropicOptions:
        if 0 < self.reasoning_tokens < LEAST_THINKING_TOKENS:
            raise ValueError(f"reasoning_tokens must be 0 or at least {LEAST_THINKING_TOKENS} for this API")
        if self.reasoning_tokens and self.assistant_prefill == "on":
            raise ValueError("with reasoning_tokens the answer cannot be begun; leave prefill out")
        return self
