"""Clients for the official SDKs: their HTTP arguments, a first look at the address, and their exceptions as ours."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx2

from niah.engines.hosted.options import ApiOptions
from niah.engines.http.address import is_local
from niah.engines.http.bounded import UnreadableReply, cause_of
from niah.engines.http.client import client_arguments
from niah.engines.http.faults import ApiFault, fault_of_status, transport_faults
from niah.errors import BackendUnavailable

# for the first contact; later requests are retried for longer, since a server that was there comes back
_FIRST_CONTACT_S = 4.0
_PAUSE_S = 0.4


def http_arguments(options: ApiOptions, base_url: str, *, is_async: bool = False) -> dict[str, Any]:
    """Arguments of an ``httpx2`` client, as the options want them."""
    return client_arguments(
        base_url,
        options.request_timeout_s,
        options.connect_timeout_s,
        keep_alive=options.concurrency,
        is_async=is_async,
    )


def require_reachable(options: ApiOptions, base_url: str) -> None:
    """Check for a few seconds whether anything answers at all; with the retries of a cell it would take minutes.

    Raises:
        BackendUnavailable: nothing takes a connection at the address.
    """
    # shorter than the whole check, so that a silent server is told apart from one that is not there
    timeout_s = min(_FIRST_CONTACT_S / 2, options.connect_timeout_s)
    arguments = http_arguments(options, base_url) | {"timeout": httpx2.Timeout(timeout_s)}
    with httpx2.Client(**arguments) as client:
        why = _first_contact(client, options, base_url)
    if not why:
        return
    if is_local(base_url):
        raise BackendUnavailable(f"no server answers at {base_url}: {why}. Is it running?")
    raise BackendUnavailable(
        f"{base_url} cannot be reached: {why}. Look at the network (or a proxy, HTTPS_PROXY), or at backend.base_url."
    )


def _first_contact(client: httpx2.Client, options: ApiOptions, base_url: str) -> str:
    """Why nothing could be reached in a few tries; empty when something was."""
    started, pause, why = time.monotonic(), _PAUSE_S, ""
    for attempt in range(options.attempts):
        left = _FIRST_CONTACT_S - (time.monotonic() - started)
        if attempt and left <= pause:
            break
        time.sleep(pause if attempt else 0)
        why = in_time(partial(_why_unreachable, client, base_url), max(0.5, left))
        if not why:
            break
    return why


def in_time(ask: Callable[[], str], seconds: float) -> str:
    """What ``ask`` finds out, or that there was no answer: looking up a name knows no limit of its own."""
    found: list[str] = []
    worker = threading.Thread(target=lambda: found.append(ask()), daemon=True)
    worker.start()
    worker.join(seconds)
    return found[0] if found else f"no answer in {seconds:.1f} s"


def _why_unreachable(client: httpx2.Client, base_url: str) -> str:
    try:
        client.head(base_url)
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as err:
        return re.sub(r"^\[Errno [-\d]+\] ", "", str(err) or type(err).__name__).rstrip(".")
    except (httpx2.HTTPError, UnreadableReply, RuntimeError):
        return ""  # something answers, whatever its reply
    return ""


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
