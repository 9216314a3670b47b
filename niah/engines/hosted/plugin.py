"""The face of a backend behind a hosted API: address and key are looked at before anything is imported or sent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from niah.engines.base import BackendPlugin, ModelInfo, Session, SessionRequest, per_session
from niah.engines.hosted.options import HOSTED_SUPPORT, ApiOptions, address_problems, api_key, require_address
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.types import Host, Problem

O = TypeVar("O", bound=ApiOptions)  # noqa: E741


def hosted_plugin(
    *,
    own_url: str,
    key_names: tuple[str, ...],
    describe: Callable[[O, str, str, str | None], ModelInfo],
    sketch: Callable[[O, str], ModelInfo],
    connect: Callable[[O, ModelInfo, str, str | None], tuple[Any, Any]],
    **rest: Any,
) -> BackendPlugin[O]:
    """A backend whose cache can be neither chosen nor seen.

    Args:
        own_url: the provider's address, the only one that gets a key unasked.
        key_names: the provider's variables.
        describe: from options, model, address and key to the model.
        sketch: what can be said of the model without asking.
        connect: from options, model, address and key to the adapter of the API, and to its batches where it has any.
        rest: further fields of ``BackendPlugin``.
    """

    def described(options: O, model: str) -> ModelInfo:
        require_address(options)
        return describe(options, model, options.base_url or own_url, api_key(options, key_names, own_url))

    def sketched(options: O, model: str) -> ModelInfo:
        require_address(options)
        return sketch(options, model)

    def check(options: O, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:  # noqa: ARG001
        return address_problems(options)

    def session(options: O, info: ModelInfo, request: SessionRequest) -> AbstractAsyncContextManager[Session]:
        from niah.engines.hosted.session import opened

        key = api_key(options, key_names, own_url)
        adapter, batches = connect(options, info, options.base_url or own_url, key)
        return opened(options, info, request, adapter, batches)

    return BackendPlugin(
        describe=described,
        sketch=sketched,
        check=check,
        support=lambda: HOSTED_SUPPORT,
        open=per_session(session),
        default_kv=("auto",),
        **rest,
    )
