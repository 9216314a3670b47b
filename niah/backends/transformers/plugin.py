"""The transformers backend: runs a model with niah's cache layers, with one prefill per context for all questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from niah.backends.transformers.check_formats import format_problems
from niah.backends.transformers.check_structure import layer_problems, structure_problems
from niah.backends.transformers.options import TransformersOptions
from niah.backends.transformers.support import support
from niah.engines.base import BackendPlugin, Engine, ModelInfo, Session, SessionRequest
from niah.engines.checkpoint.describe import describe_model
from niah.engines.checkpoint.gguf import is_alias
from niah.engines.checkpoint.yarn import stretched
from niah.errors import BackendUnavailable, CellError, ConfigError, boundary
from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from niah.models.shape import ModelShape
from niah.types import Host, Problem


def _describe(options: TransformersOptions, model: str) -> ModelInfo:
    from niah.backends.transformers.load import check_positions, pick_device, pick_dtype, stretched_config
    from niah.engines.checkpoint.loadable import check_loadable

    info = describe_model(
        model,
        template=options.template,
        date=options.date,
        trust_remote_code=options.trust_remote_code,
        revision=options.revision,
    )
    check_loadable(info.source, model, trust_remote_code=options.trust_remote_code, revision=options.revision)
    if options.yarn_factor is not None:
        stretched_config(options, info, options.yarn_factor)  # refuses a model whose positions cannot be stretched
        info = stretched(info, options.yarn_factor)
    check_positions(info.source, options)
    device = pick_device(options.device)
    dtype = str(pick_dtype(options.dtype, device)).removeprefix("torch.")
    return replace(info, numerics={"device": device.type, "dtype": dtype})


def _check(options: TransformersOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:
    problems = format_problems(kv, shape)
    problems += structure_problems(kv, shape, host, on_cpu=_on_cpu(options, host))
    if options.oversubscribe:
        problems = [problem for problem in problems if problem.field != "backend.oversubscribe"]
    if shape is not None:
        problems += layer_problems(shape)
    if options.device.startswith("cuda") and host.device != "cuda":
        problems.append(Problem("backend.device", options.device, "this machine has no CUDA device", "Use device=cpu."))
    return problems


def _on_cpu(options: TransformersOptions, host: Host) -> bool:
    return options.device == "cpu" or (options.device == "auto" and host.device == "cpu")


class _Engine:
    def __init__(self, options: TransformersOptions, info: ModelInfo, loaded: Any) -> None:
        self.options, self.info, self.loaded = options, info, loaded
        self._check = ""

    @asynccontextmanager
    async def session(self, request: SessionRequest) -> AsyncIterator[Session]:
        from niah.backends.transformers.method import Setting, open_running
        from niah.backends.transformers.model_check import check_model
        from niah.backends.transformers.session import HFSession

        if self.info.shape is None:
            raise ConfigError(f"the shape of {self.info.name!r} is not known, so its cache cannot be built.")
        if not self._check:
            self._check = await asyncio.to_thread(check_model, self.loaded, self.info, self.options, request.max_length)
        kv = request.kv
        if kv.keys.element == "auto":
            own = Plain(self.info.reference_kv or "bf16")
            kv = replace(kv, keys=own, values=own)
        setting = Setting(
            self.loaded, kv, self.info.shape, self.info.source, self.options.thread_count(), self.options.model_dump()
        )
        with open_running(setting) as running:
            session = HFSession(running, self.info, self.options, request)
            session.notes["model_check"] = self._check
            try:
                yield session
            finally:
                session.release()


@asynccontextmanager
async def _open(options: TransformersOptions, info: ModelInfo) -> AsyncIterator[Engine]:
    from niah.backends.transformers.cache.build import layout_difference
    from niah.backends.transformers.load import load_model

    try:
        with boundary("load", f"cannot load {info.name!r}"):
            loaded = await asyncio.to_thread(load_model, options, info)
            differs = layout_difference(loaded.model.config.get_text_config(), info.shape)
    except CellError as err:
        raise BackendUnavailable(str(err).splitlines()[0]) from err
    if differs:
        raise BackendUnavailable(
            f"the cache of {info.name!r} is not what its config says: {differs}. Its answers would not be its own "
            "here; use --backend vllm."
        )
    yield _Engine(options, info, loaded)


PLUGIN = BackendPlugin(
    name="transformers",
    summary="real models on this machine's CPU or GPU, with niah's own KV-cache layers",
    options=TransformersOptions,
    describe=_describe,
    check=_check,
    support=support,
    open=_open,
    default_model="smollm2",
    default_kv=("bf16", "int8", "int4"),
    requires=(("torch", "transformers"), ("transformers", "transformers")),
    is_known_here=lambda _, model: is_alias(model),
)
