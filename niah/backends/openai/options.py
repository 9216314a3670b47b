"""Options of the openai backend."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from niah.engines.base import QUIET
from niah.engines.hosted.options import BatchOptions


class OpenAIOptions(BatchOptions):
    """Options of the openai backend, besides those of every API.

    ``temperature`` goes to OpenAI itself only when it is set: its reasoning models refuse one.

    Attributes:
        api: ``chat``, ``responses`` or ``completions`` (the raw text, without a chat template).
        stream: read replies as they come, which gives the time to the first token and costs some CPU time here.
        reasoning_effort: ``low``, ``medium`` … for models that take it.
        logprobs: ask for the log-probability of the answer; not every server or model takes it.
    """

    api: Literal["chat", "responses", "completions"] = "chat"
    stream: bool = Field(default=False, json_schema_extra=QUIET)
    reasoning_effort: str | None = None
    logprobs: bool = Field(default=False, json_schema_extra=QUIET)

    @model_validator(mode="after")
    def _fits_together(self) -> OpenAIOptions:
        if self.api == "completions" and (self.reasoning_tokens or self.reasoning_effort):
            raise ValueError("api=completions knows no reasoning; use chat or responses")
        if self.api == "responses" and self.stream:
            raise ValueError("stream is for api=chat and api=completions")
        if self.api == "responses" and self.assistant_prefill == "on":
            raise ValueError("api=responses cannot begin an answer; use chat or completions, or assistant_prefill=off")
        return self
