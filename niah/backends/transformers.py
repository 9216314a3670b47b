"""Real models through transformers, with own cache layers: one prefill per context answers all its questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from niah.backends._gguf import is_alias
from niah.backends._hf_formats import format_problems
from niah.backends._hf_model import describe_model
from niah.backends._hf_structure import layer_problems, structure_problems
from niah.backends._stretch import stretched
from niah.backends._threads import default_threads
from niah.backends.base import QUIET, BackendOptions, BackendPlugin, Day, Engine, ModelInfo, Session, SessionRequest
from niah.errors import BackendUnavailable, CellError, ConfigError, boundary
from niah.kv.base import KVConfig
from niah.kv.shape import ModelShape
from niah.types import Host, Problem


class TransformersOptions(BackendOptions):
    """Options of the transformers backend.

    Attributes:
        device: ``auto`` takes CUDA, then MPS, then the CPU.
        dtype: compute type; ``auto`` is bf16 where the hardware has it, else fp32 on a CPU and fp16 on a GPU.
        attn: ``auto`` is SDPA where the model allows it, else ``eager``.
        template: ``auto`` uses the model's chat template where it has one, else plain completion.
        date: ISO day that a chat template prints which prints one; None is the same day in every run.
        threads: CPU threads; None is what ``OMP_NUM_THREADS`` says, else the cores of this process.
        prefill_chunk: prompt tokens per forward pass, unless the KV setting says otherwise.
        pack: ``False`` answers each question from a fork of the context's cache instead of all in one sequence.
        oversubscribe: allow more ranks of a ring than this machine has cores.
        yarn_factor: stretch the positions by YaRN (arXiv:2309.00071) to this many times the model's context, in every
            setting and the reference alike.
        trust_remote_code: run code that a model's repository brings along.
        skip_checks: do not compare answers with plain forward passes when a model is used for the first time.
    """

    device: str = "auto"
    dtype: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    attn: Literal["auto", "sdpa", "eager"] = "auto"
    template: Literal["auto", "chat", "completion"] = "auto"
    date: Day | None = Field(default=None, json_schema_extra=QUIET)
    threads: int | None = Field(default=None, ge=1, json_schema_extra=QUIET)
    prefill_chunk: int = Field(default=512, ge=1)
    pack: bool = True
    oversubscribe: bool = Field(default=False, json_schema_extra=QUIET)
    yarn_factor: float | None = Field(default=None, gt=1, json_schema_extra={"since": "0.2"})
    trust_remote_code: bool = False
    revision: str | None = None
    skip_checks: bool = Field(default=False, json_schema_extra=QUIET)

    def thread_count(self) -> int:
        return self.threads or default_threads()


def _describe(options: TransformersOptions, model: str) -> ModelInfo:
    from niah.backends._hf_load import pick_device, pick_dtype, refuse_unplaced, stretched_config
    from niah.backends._hf_loadable import check_loadable

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
    refuse_unplaced(info.source, options)
    device = pick_device(options.device)
    dtype = str(pick_dtype(options.dtype, device)).removeprefix("torch.")
    return replace(info, numerics={"device": device.type, "dtype": dtype})


def _check(options: TransformersOptions, kv: KVConfig, shape: ModelShape | None, host: Host) -> list[Problem]:
    problems = [*_unsupported(kv), *format_problems(kv, shape)]
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


def _unsupported(kv: KVConfig) -> list[Problem]:
    problems = []
    asked = {
        "full-precision residual outside KIVI": kv.residual > 0 and kv.granularity != "kivi",
        "tensor or pipeline parallelism": kv.tp > 1 or kv.pp > 1,
        "paging": kv.block_size is not None or kv.pool_bytes is not None,
        "rope scaling in the setting (see backend.yarn_factor)": kv.rope is not None,
        "engine-specific options": bool(kv.native),
    }
    for what, wanted in asked.items():
        if wanted:
            problems.append(Problem("kv", kv.name, f"this backend has no {what}", "Drop that part of the setting."))
    return problems


class _Engine:
    def __init__(self, options: TransformersOptions, info: ModelInfo, loaded: Any) -> None:
        self.options, self.info, self.loaded = options, info, loaded
        self._check = ""

    @asynccontextmanager
    async def session(self, request: SessionRequest) -> AsyncIterator[Session]:
        from niah.backends._hf_session import HFSession
        from niah.backends._model_check import checked_model
        from niah.backends.caches.method import Setting, open_running

        if self.info.shape is None:
            raise ConfigError(f"the shape of {self.info.name!r} is not known, so its cache cannot be built.")
        if not self._check:
            self._check = await asyncio.to_thread(
                checked_model, self.loaded, self.info, self.options, request.max_length
            )
        kv = request.kv
        if kv.k_dtype == "auto":
            dtype = self.info.reference_kv or "bf16"
            kv = replace(kv, k_dtype=dtype, v_dtype=dtype)
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
    from niah.backends._hf_load import load_model
    from niah.backends.caches.build import library_differs

    try:
        with boundary("load", f"cannot load {info.name!r}"):
            loaded = await asyncio.to_thread(load_model, options, info)
            differs = library_differs(loaded.model.config.get_text_config(), info.shape)
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
    open=_open,
    default_model="smollm2",
    default_kv=("bf16", "int8", "int4"),
    requires=(("torch", "transformers"), ("transformers", "transformers")),
    is_known_here=lambda _, model: is_alias(model),
)
