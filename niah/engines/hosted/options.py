"""Options that all backends behind an HTTP API share, and what is refused before anything is sent."""

from __future__ import annotations

import os
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field

from niah.engines.base import QUIET, BackendOptions
from niah.engines.http import address
from niah.engines.support import Support
from niah.errors import ConfigError, MissingKey
from niah.redact import remember
from niah.types import Problem


class ApiOptions(BackendOptions):
    """Options of every backend behind an HTTP API.

    Attributes:
        base_url: of the service; None is the provider's own.
        api_key_env: name of the environment variable that holds the key. None is the provider's usual one, which is
            sent to the provider's own address only: another server gets a key only when one is named here.
        concurrency: requests in flight.
        tokens_per_minute: prompt and answer tokens that may be sent in a minute; None sets no limit.
        requests_per_minute: None sets no limit.
        attempts: requests for one cell, the first included, until it fails for now and is left to the next run.
        retry_wait_s: seconds before the second attempt; later waits double, up to a minute. Retry-After wins.
        retry_for_s: no further attempt starts this long after the first.
        connect_timeout_s: seconds until a connection must stand.
        request_timeout_s: seconds of silence after which a request is given up; a long prompt is silent.
        allow_remote_http: allow plain http to another machine; key, prompts and answers can be read on the way.
        assistant_prefill: whether the start of the answer is sent as the assistant's words, for the model to go on
            from; ``auto`` where the server is known to do that.
        reasoning_tokens: output tokens for reasoning, on top of the answer budget; 0 asks for no reasoning.
        temperature: None leaves it out, for models that refuse it.
        context_tokens: longest prompt and answer; None is what the server says, where it does.
        tokenizer: cuts the haystack: ``auto``, ``o200k_base``, ``cl100k_base``, ``llama3``, ``qwen3``, ``words``, an
            embedded model's alias, or a path of a tokenizer.json. Where a server or provider counts, that count rules
            and this only has to be near it.
    """

    base_url: str | None = None
    api_key_env: str | None = Field(default=None, json_schema_extra=QUIET)
    concurrency: int = Field(default=4, ge=1, le=1024, json_schema_extra=QUIET)
    tokens_per_minute: int | None = Field(default=None, ge=1, json_schema_extra=QUIET)
    requests_per_minute: int | None = Field(default=None, ge=1, json_schema_extra=QUIET)
    attempts: int = Field(default=8, ge=1, le=100, json_schema_extra=QUIET)
    retry_wait_s: float = Field(default=1.0, gt=0, le=60, json_schema_extra=QUIET)
    retry_for_s: float = Field(default=600.0, gt=0, json_schema_extra=QUIET)
    connect_timeout_s: float = Field(default=10.0, gt=0, json_schema_extra=QUIET)
    request_timeout_s: float = Field(default=600.0, gt=0, json_schema_extra=QUIET)
    allow_remote_http: bool = Field(default=False, json_schema_extra=QUIET)
    assistant_prefill: Literal["auto", "on", "off"] = Field(default="auto", json_schema_extra={"formerly": "prefill"})
    reasoning_tokens: int = Field(default=0, ge=0, le=1_000_000)
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    context_tokens: int | None = Field(default=None, ge=1, json_schema_extra=QUIET)
    tokenizer: str = "auto"


class BatchOptions(ApiOptions):
    """Options of backends that can hand in batches (``--batch``).

    Attributes:
        batch_poll_s: seconds between two queries of a batch's state.
        batch_settle_s: seconds for which a batch that may have arrived is searched for before it is submitted again.
        batch_requests: requests in one batch at most; None is what the service takes.
        batch_tokens: prompt tokens that may wait at the service at a time, where your account has such a limit.
    """

    batch_poll_s: float = Field(default=30.0, gt=0, json_schema_extra=QUIET)
    batch_settle_s: float = Field(default=90.0, ge=0, json_schema_extra=QUIET)
    batch_requests: int | None = Field(default=None, ge=1, json_schema_extra=QUIET)
    batch_tokens: int | None = Field(default=None, ge=1, json_schema_extra=QUIET)


def address_problems(options: ApiOptions) -> list[Problem]:
    """Why ``base_url`` may not be used."""
    return list(
        address.address_problems(
            options.base_url,
            allow_remote_http=options.allow_remote_http,
            example="http://127.0.0.1:8000/v1",
            key_hint="Name the variable that holds it: backend.api_key_env.",
        )
    )


def require_address(options: ApiOptions) -> None:
    """Nothing is sent to an address that is refused.

    Raises:
        ConfigError: see ``address_problems``.
    """
    for problem in address_problems(options):
        raise ConfigError(problem.sentence())


# behind an API a KV cache can be neither chosen nor seen
HOSTED_SUPPORT = Support(
    formats=frozenset({("auto", "none")}),
    reason="a model behind an API shows nothing of its KV cache, so no setting of it can be asked for or observed",
)


def api_key(options: ApiOptions, usual: tuple[str, ...], own_url: str) -> str | None:
    """The key from the environment; None where a server other than the provider's own needs none.

    Args:
        usual: the provider's variables, the first that is set counts.
        own_url: the provider's address, the only one that gets a key unasked.

    Raises:
        MissingKey: none is set.
    """
    named = options.api_key_env
    is_own = options.base_url is None or urlsplit(options.base_url).hostname == urlsplit(own_url).hostname
    if named is None and not is_own:
        return None
    names = (named,) if named is not None else usual
    for name in names:
        value = os.environ.get(name, "").strip()
        if value:
            remember(value)
            return value
    raise MissingKey(
        f"no key: the environment variable {' or '.join(names)} is not set. Set it, or write it into a file .env here "
        f"as {names[0]}=…; a local server is named by --set backend.base_url=http://127.0.0.1:8000/v1."
    )
