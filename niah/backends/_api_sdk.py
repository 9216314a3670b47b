"""What the official SDKs of OpenAI and Anthropic, made by the same generator, raise: turned into our faults."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx2

from niah.backends._api_faults import ApiFault, fault_of_status, transport_faults
from niah.backends._api_options import ApiOptions, is_loopback
from niah.backends._bounded import HEADERS, async_hooks, cause_of, hooks


def http_arguments(options: ApiOptions, base_url: str, *, is_async: bool = False) -> dict[str, Any]:
    """Arguments of an ``httpx2`` client; certificates are always verified, and replies are read up to a limit."""
    return {
        "timeout": httpx2.Timeout(options.request_timeout_s, connect=options.connect_timeout_s),
        # the session itself limits what is in flight
        "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=options.concurrency),
        # a proxy for the world outside has nothing to do with this machine's own address
        "trust_env": not is_loopback(base_url),
        "verify": _verifying(),
        "headers": HEADERS,
        "event_hooks": async_hooks(httpx2) if is_async else hooks(httpx2),
    }


@cache
def _verifying() -> ssl.SSLContext:
    """One context for all clients, since reading the authorities' certificates takes a tenth of a second."""
    return httpx2.create_ssl_context()


@contextmanager
def sdk_faults(service: str, sdk: Any) -> Iterator[None]:
    """Turn the exceptions of an SDK, given as its module, into ours.

    Raises:
        ApiFault, BackendUnavailable: see ``fault_of_status``.
    """
    try:
        with transport_faults(service):
            yield
    except sdk.APITimeoutError as err:
        raise ApiFault("timeout", f"{service} did not answer in time", retryable=True) from err
    except sdk.APIConnectionError as err:
        if (found := cause_of(err)) is not None:
            raise ApiFault(found.kind, f"{service}: {found}") from err
        cause = err.__cause__ or err
        raise ApiFault("connection_lost", f"{service}: {str(cause) or type(cause).__name__}", retryable=True) from err
    except sdk.APIStatusError as err:
        body = err.response.text if err.response.is_closed else json.dumps(err.body)
        raise fault_of_status(err.status_code, body, err.response.headers, service) from err
    except sdk.APIError as err:
        raise ApiFault("bad_reply", f"{service}: {err}", retryable=True) from err
