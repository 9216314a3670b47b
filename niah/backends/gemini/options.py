"""Options of the gemini backend."""

from __future__ import annotations

from niah.engines.hosted.options import ApiOptions


class GeminiOptions(ApiOptions):
    """Options of the gemini backend, besides those of every API.

    Attributes:
        logprobs: ask for the log-probability of the answer; not every model takes it.
    """

    logprobs: bool = False
