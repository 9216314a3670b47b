"""The session of a vLLM engine in this process, stepped here so that each request's blocks are seen at their peak."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from niah.backends.vllm.memory import Pool, memory_of, read_pool
from niah.engines.base import ModelInfo, SessionRequest
from niah.engines.gpu import CardReader
from niah.engines.threads import thread_places
from niah.engines.vllm.arguments import as_keywords, check_windows, engine_settings
from niah.engines.vllm.check import FP8
from niah.errors import BackendUnavailable, CellError, ConfigError, boundary
from niah.types import Answer, Failure, Prompt, Reply, Timing

if TYPE_CHECKING:
    from niah.backends.vllm.options import VllmOptions

SAMPLE_EVERY_S = 0.5


@dataclass
class _EngineRequest:
    """One prompt in the engine: the greedy request and, beside it, the one that scores the expected answer."""

    prompt: Prompt
    output: list[int] = field(default_factory=list)
    stop: str = ""
    cached: int = 0
    metrics: Any = None
    peak_blocks: tuple[int, ...] = ()
    preemptions: int = 0
    logprob: float | None = None
    waiting: set[str] = field(default_factory=set)

    @property
    def generated(self) -> int:
        """Tokens that the model produced: the answer's and the end of the sequence, where it came."""
        return len(self.output) + (self.stop == "end")


@dataclass
class _Job:
    requests: list[_EngineRequest]
    done: asyncio.Future[list[Reply]]
    loop: asyncio.AbstractEventLoop


class VllmSession:
    """All prompts of a setting go to one engine, which batches them; a thread of its own steps it."""

    max_in_flight = 64

    def __init__(self, options: VllmOptions, info: ModelInfo, request: SessionRequest) -> None:
        self._options, self._info, self._request = options, info, request
        self._inbox: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._requests: dict[str, tuple[_Job, _EngineRequest]] = {}
        self._thread: threading.Thread | None = None
        self._llm: Any = None
        self._pool: Pool | None = None
        self._serial = 0
        self._card = CardReader()
        self._sampled_at = 0.0

    async def start(self) -> None:
        """Load the engine.

        Raises:
            ConfigError: the pool is too small for the longest prompt.
            BackendUnavailable: vLLM refuses the model or the setting.
        """
        await asyncio.to_thread(self._load)
        self._thread = threading.Thread(target=self._serve, name="vllm", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        self._inbox.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        llm, self._llm = self._llm, None
        if llm is not None:
            llm.llm_engine.engine_core.shutdown()

    def _load(self) -> None:
        _environment(self._options)
        try:
            from vllm import LLM
        except (ImportError, OSError) as err:
            raise BackendUnavailable(f"vLLM is installed but cannot be imported: {err}") from err
        settings = engine_settings(self._options, self._info, self._request, on_cpu=not _has_cuda())
        try:
            with warnings.catch_warnings():
                # a user of niah can do nothing about warnings between vLLM's own imports
                warnings.simplefilter("ignore")
                self._llm = LLM(**as_keywords(settings), disable_log_stats=False, use_tqdm_on_load=False)
        except (ValueError, RuntimeError, NotImplementedError, OSError) as err:
            first = str(err).strip().splitlines()[0] if str(err).strip() else type(err).__name__
            raise BackendUnavailable(f"vLLM cannot start with kv {self._request.kv.name!r}: {first}") from err
        self._pool = read_pool(self._llm)
        check_windows(self._request.kv, [group.window for group in self._pool.groups], self._info.name)
        needed = self._pool.blocks_for(self._request.max_length)
        if needed > self._pool.usable_blocks:
            raise ConfigError(
                f"the KV pool of {self._pool.pool_bytes:,} bytes holds {self._pool.usable_blocks} blocks, but the "
                f"longest prompt of {self._request.max_length:,} tokens needs {needed}: raise backend.pool_bytes "
                f"to {needed * self._pool.pool_bytes // self._pool.usable_blocks + 1:,} or more."
            )

    def effective(self) -> dict[str, Any]:
        """Read back from the loaded engine."""
        from vllm import __version__

        config = self._llm.llm_engine.vllm_config
        pool = self._pool
        values: dict[str, Any] = {
            "kv.cache_dtype": str(config.cache_config.cache_dtype),
            "kv.block_size": config.cache_config.block_size,
            "kv.skip_layers": ",".join(config.cache_config.kv_cache_dtype_skip_layers) or "none",
            "kv.prefill_reads": "quantised",
            "prefix_caching": bool(config.cache_config.enable_prefix_caching),
            "compute_dtype": str(config.model_config.dtype).removeprefix("torch."),
            "attention": ",".join(_attention_backends(self._llm)),
            "prefill_chunk": config.scheduler_config.max_num_batched_tokens,
            "max_num_seqs": config.scheduler_config.max_num_seqs,
            "device": str(config.device_config.device_type),
            "rope": _rope(config.model_config.hf_text_config),
            "scales": _scales(self._llm, str(config.cache_config.cache_dtype)),
            "vllm": __version__,
        }
        if self._request.kv.keys.element in FP8 and values["device"] == "cpu":
            values["kv.rounding"] = "zero"  # the CPU kernel cuts the mantissa off, see niah/kv/families/fp8.py
        if pool is not None:
            longest = int(config.model_config.max_model_len)
            values |= pool.effective() | {
                "max_model_len": longest,
                "kv.contiguous_bytes": pool.contiguous_bytes(longest),
            }
        return values

    async def answer(self, group: Sequence[Prompt]) -> list[Reply]:
        loop = asyncio.get_running_loop()
        job = _Job([_EngineRequest(prompt) for prompt in group], loop.create_future(), loop)
        self._inbox.put(job)
        replies = await job.done
        self._request.on_tokens(len(group[0].context))
        return replies

    def _serve(self) -> None:
        """The stepping thread: sleeps when there is nothing to do, ends at None."""
        while True:
            if not self._requests:
                job = self._inbox.get()
                if job is None:
                    return
                self._add(job)
            while not self._inbox.empty():
                more = self._inbox.get()
                if more is None:
                    return
                self._add(more)
            try:
                with boundary("engine", "vLLM"):
                    self._step()
            except CellError as err:
                self._fail_all(err)

    def _add(self, job: _Job) -> None:
        """Hand a group's requests to the engine; one that it refuses fails the group."""
        try:
            with boundary("engine", "vLLM refused a request"):
                for request in job.requests:
                    request.waiting.add(self._greedy(job, request))
                    if self._options.logprobs and self._request.reuse:
                        request.waiting.add(self._score(job, request, cached=True))
        except CellError as err:
            mine = [name for name, (owner, _) in self._requests.items() if owner is job]
            self._llm.llm_engine.abort_request(mine, internal=True)
            for name in mine:
                self._requests.pop(name)
            job.loop.call_soon_threadsafe(job.done.set_exception, err)

    def _greedy(self, job: _Job, request: _EngineRequest) -> str:
        from vllm import SamplingParams

        params = SamplingParams(temperature=0.0, max_tokens=request.prompt.answer_budget, detokenize=False)
        return self._send(job, request, request.prompt.ids(), params, "g")

    def _send(self, job: _Job, request: _EngineRequest, ids: list[int], params: Any, kind: str) -> str:
        self._serial += 1
        name = self._llm.llm_engine.add_request(f"{kind}{self._serial}", {"prompt_token_ids": ids}, params)
        name = name if isinstance(name, str) else f"{kind}{self._serial}"
        self._requests[name] = (job, request)
        return name

    def _score(self, job: _Job, request: _EngineRequest, *, cached: bool) -> str:
        """Ask for the log-probabilities of prompt + expected answer, computing only what the prefix cache lacks."""
        from vllm import SamplingParams

        params = SamplingParams(
            temperature=0.0, max_tokens=1, prompt_logprobs=0, detokenize=False, skip_reading_prefix_cache=not cached
        )
        ids = [*request.prompt.ids(), *request.prompt.gold]
        return self._send(job, request, ids, params, "s")

    def _step(self) -> None:
        engine = self._llm.llm_engine
        outputs = engine.step()
        self._watch()
        self._sample()
        finished: list[str] = []
        for output in outputs:
            name = self._name_of(output.request_id)
            if name is None:
                continue
            job, request = self._requests[name]
            ended = self._take_score(job, request, output) if name[0] == "s" else self._take_answer(request, output)
            if ended:
                finished.append(name)
        for name in finished:
            job, request = self._requests.pop(name)
            request.waiting.discard(name)
            if not any(a.waiting for a in job.requests):
                replies = [self._reply(a) for a in job.requests]
                job.loop.call_soon_threadsafe(job.done.set_result, replies)

    def _name_of(self, request_id: str) -> str | None:
        """Outputs carry the id as given; the engine's own has a suffix."""
        if request_id in self._requests:
            return request_id
        return next((name for name in self._requests if name.rsplit("-", 1)[0] == request_id), None)

    def _watch(self) -> None:
        """Keep the most blocks that each greedy request has held, per KV-cache group."""
        managers = self._llm.llm_engine.engine_core.engine_core.scheduler.kv_cache_manager.coordinator
        for name, (_, request) in self._requests.items():
            if name[0] != "g":
                continue
            held = tuple(
                sum(1 for block in manager.req_to_blocks.get(name, ()) if not block.is_null)
                for manager in managers.single_type_managers
            )
            before = request.peak_blocks or (0,) * len(held)
            request.peak_blocks = tuple(max(a, b) for a, b in zip(before, held, strict=True))

    def _sample(self) -> None:
        """A reading of the pool and the card, in the loop's own thread as its file is written there."""
        now = time.monotonic()
        if now - self._sampled_at < SAMPLE_EVERY_S or not self._requests:
            return
        self._sampled_at = now
        scheduler = self._llm.llm_engine.engine_core.engine_core.scheduler
        reading = {
            "kv_cache_usage_perc": float(scheduler.kv_cache_manager.usage),
            "num_requests_running": float(len(scheduler.running)),
            "num_requests_waiting": float(len(scheduler.waiting)),
            **self._card.read(),
        }
        job, _ = next(iter(self._requests.values()))
        job.loop.call_soon_threadsafe(self._request.on_sample, reading)

    def _take_answer(self, request: _EngineRequest, output: Any) -> bool:
        completion = output.outputs[0]
        request.output = list(completion.token_ids)
        request.cached = output.num_cached_tokens or request.cached
        request.metrics = output.metrics or request.metrics
        if output.metrics is not None:
            request.preemptions = int(getattr(output.metrics, "num_preemptions", 0) or 0)
        if output.finished:
            ends = completion.finish_reason == "stop"
            if ends and request.output:
                request.output = request.output[:-1]  # the end-of-sequence token is no part of the answer
            request.stop = "end" if ends else "length"
            return True
        text = self._info.tokenizer.decode(request.output)
        if request.output and self._request.is_complete(text, request.prompt.case):
            request.stop = "stop"
            self._llm.llm_engine.abort_request([output.request_id])
            return True
        return False

    def _take_score(self, job: _Job, request: _EngineRequest, output: Any) -> bool:
        if not output.finished:
            return False
        prompt = request.prompt
        rows = output.prompt_logprobs[-len(prompt.gold) :]
        if (output.num_cached_tokens or 0) > prompt.token_count - 1:
            # a cached block reaches into the answer, so some rows were not computed: once more without the cache
            request.waiting.add(self._score(job, request, cached=False))
            return True
        request.logprob = sum(float(row[token].logprob) for row, token in zip(rows, prompt.gold, strict=True))
        return True

    def _reply(self, request: _EngineRequest) -> Reply:
        if self._pool is None:
            return Failure("engine", "the engine was closed")
        prompt = request.prompt
        memory = memory_of(
            self._pool,
            self._info.shape,
            self._request.kv,
            prompt,
            request.generated,
            request.peak_blocks,
            preempted=request.preemptions > 0,
        )
        return Answer(
            text=self._info.tokenizer.decode(request.output),
            stop=request.stop,
            prompt_tokens=prompt.token_count,
            output_tokens=request.generated,
            cached_tokens=request.cached,
            logprob=request.logprob,
            timing=_timing(request.metrics),
            memory=memory,
        )

    def _fail_all(self, error: CellError) -> None:
        jobs = {id(job): job for job, _ in self._requests.values()}
        self._requests.clear()
        for job in jobs.values():
            job.loop.call_soon_threadsafe(job.done.set_exception, error)


def _environment(options: VllmOptions) -> None:
    """What vLLM reads from the environment; set before its first import."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # the engine's scheduler must be in this process to be read
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    if "VLLM_CPU_OMP_THREADS_BIND" not in os.environ and hasattr(os, "sched_getaffinity"):
        cores = thread_places(options.threads)
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores))


def _has_cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _attention_backends(llm: Any) -> list[str]:
    """Names of the attention backends of all layers, each once."""
    context = llm.llm_engine.vllm_config.compilation_config.static_forward_context
    names = {layer.get_attn_backend().get_name() for layer in context.values() if hasattr(layer, "get_attn_backend")}
    return sorted(names) or ["unknown"]


def _scales(llm: Any, cache_dtype: str) -> str:
    """Where the scales of a quantized cache come from."""
    if "fp8" not in cache_dtype:
        dynamic = "per_token_head" in cache_dtype or cache_dtype.startswith("turboquant_")
        return "dynamic" if dynamic else "none"
    context = llm.llm_engine.vllm_config.compilation_config.static_forward_context
    found = {
        float(getattr(layer, side))
        for layer in context.values()
        for side in ("_k_scale_float", "_v_scale_float")
        if hasattr(layer, side)
    }
    return "1.0" if found <= {1.0} else "checkpoint"


def _rope(config: Any) -> str:
    """How positions are turned, with the factor where they are stretched."""
    parameters = getattr(config, "rope_parameters", None) or {}
    factor = parameters.get("factor")
    return f"{parameters.get('rope_type', 'default')}" + (f", factor {factor:g}" if factor else "")


def _timing(metrics: Any) -> Timing:
    if metrics is None or not metrics.first_token_ts:
        return Timing()
    start = metrics.scheduled_ts or metrics.queued_ts
    return Timing(
        prefill_s=max(0.0, metrics.first_token_ts - start),
        first_token_s=max(0.0, metrics.first_token_ts - metrics.queued_ts),
        total_s=max(0.0, metrics.last_token_ts - start),
    )
