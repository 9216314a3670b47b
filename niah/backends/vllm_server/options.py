"""Options of the vllm_server backend."""

from __future__ import annotations

from pydantic import Field

from niah.engines.base import QUIET
from niah.engines.vllm.arguments import VllmEngineOptions

# environment variable of a running server's key
KEY_VARIABLE = "VLLM_API_KEY"


class VllmServerOptions(VllmEngineOptions):
    """Options of the vllm-server backend, beside those of the engine that it starts.

    Attributes:
        base_url: of a server that runs already, for instance ``http://127.0.0.1:8000``; None starts one.
        served_model: the server's name of the model where it is not ``--model``.
        port: of a started server, on 127.0.0.1; None takes a free one.
        startup_timeout_s: seconds that a start may take, loading and compiling included.
        request_timeout_s: seconds of silence after which a request is given up; a prefill is silent.
        logprobs: score the expected answer; only where prefixes are reused, as it takes requests of its own for
            replies that leave it: one per token after the first that differs, in one batch, from the cached prefix.
        concurrency: requests in flight. vLLM publishes one usage for all of them, so only at 1 does a reading belong
            to one request; with more, runs are faster and ``allocated_bytes`` stays unknown.
        sample_every_s: seconds between readings of ``/metrics`` while requests are in flight.
        allow_remote_http: allow plain http to another machine; prompts and answers can be read on the way.

    A server's key, where it needs one, is read from the environment variable ``VLLM_API_KEY``.
    """

    base_url: str | None = None
    served_model: str | None = None
    port: int | None = Field(default=None, ge=1, le=65535, json_schema_extra=QUIET)
    startup_timeout_s: float = Field(default=600.0, gt=0, json_schema_extra=QUIET)
    request_timeout_s: float = Field(default=1800.0, gt=0, json_schema_extra=QUIET)
    concurrency: int = Field(default=1, ge=1, le=1024)
    sample_every_s: float = Field(default=0.2, ge=0.02, le=60.0, json_schema_extra=QUIET)
    allow_remote_http: bool = Field(default=False, json_schema_extra=QUIET | {"formerly": "allow_remote"})
