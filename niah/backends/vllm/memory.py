"""KV memory of a vLLM engine: blocks and pages per KV-cache group, and what a request's tokens need of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from niah.engines.memory import usage_by_formula
from niah.engines.vllm.arguments import stored_as
from niah.kv.config import KVConfig
from niah.kv.memory.totals import stored_tokens
from niah.models.shape import ModelShape
from niah.types import KVUsage, Prompt


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that share block tables.

    Attributes:
        page_bytes: bytes of one block over all layers of the group, padding included.
        token_bytes: bytes that one token really needs in them.
        window: tokens kept by window layers; None for full attention.
    """

    kind: str
    layers: int
    block_size: int
    page_bytes: int
    token_bytes: int
    dtype: str
    window: int | None


@dataclass(frozen=True, slots=True)
class Pool:
    """The engine's pool. One block is reserved as the null block and never given out.

    Attributes:
        pool_bytes: of one rank.
        ranks: devices that each hold such a pool; all hold as many blocks.
        split: ranks that share the tokens of a sequence (decode context parallelism).
    """

    groups: tuple[Group, ...]
    total_blocks: int
    pool_bytes: int
    ranks: int = 1
    split: int = 1

    @property
    def usable_blocks(self) -> int:
        return self.total_blocks - 1

    def blocks_for(self, tokens: int) -> int:
        """Blocks of one sequence over all groups, windows at their full length: an upper bound."""
        return sum(ceil(tokens / g.block_size) for g in self.groups)

    def contiguous_bytes(self, tokens: int) -> int:
        """Bytes of one sequence that is reserved whole at ``tokens``, without blocks; windows at their full length."""
        return sum(group.token_bytes for group in self.groups) * tokens * self.ranks // self.split

    def effective(self) -> dict[str, Any]:
        """For the record of settings in force."""
        described = [
            f"{g.layers} {g.kind} layers, {g.dtype}, block {g.block_size}, page {g.page_bytes:,} B"
            + (f", window {g.window}" if g.window else "")
            for g in self.groups
        ]
        return {
            "kv.groups": "; ".join(described),
            "kv.page_bytes": sum(g.page_bytes for g in self.groups),
            "kv.k_dtype": ",".join(sorted({_element(g.dtype) for g in self.groups})),
            "kv.v_dtype": ",".join(sorted({_element(g.dtype) for g in self.groups})),
            "kv.windows": ",".join(sorted({str(g.window or "full") for g in self.groups})),
            "kv.pool_bytes": self.pool_bytes,
            "kv.pool_blocks": self.total_blocks,
        } | ({"kv.ranks": self.ranks, "kv.tokens_split_over": self.split} if self.ranks > 1 else {})


def _element(dtype: str) -> str:
    names = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float8_e4m3fn": "fp8_e4m3"}
    return names.get(dtype, dtype)


def read_pool(llm: Any) -> Pool:
    """The pool of a loaded engine, from the scheduler's own configuration.

    Where layers with different page sizes were merged into one group (``UniformTypeKVCacheSpecs``) the scheduler keeps
    one layer's spec for all; then the page size comes from the pool's bytes over its blocks.
    """
    core = llm.llm_engine.engine_core.engine_core
    config = core.scheduler.kv_cache_config
    pool_bytes = sum(tensor.size for tensor in config.kv_cache_tensors)
    groups = tuple(
        _group(group, str(llm.llm_engine.vllm_config.cache_config.cache_dtype)) for group in config.kv_cache_groups
    )
    if len(groups) == 1 and groups[0].page_bytes * config.num_blocks != pool_bytes:
        one = groups[0]
        page = pool_bytes // config.num_blocks
        groups = (Group(one.kind, one.layers, one.block_size, page, page // one.block_size, one.dtype, one.window),)
    parallel = llm.llm_engine.vllm_config.parallel_config
    return Pool(
        groups,
        int(config.num_blocks),
        pool_bytes,
        ranks=parallel.tensor_parallel_size * parallel.prefill_context_parallel_size,
        split=parallel.decode_context_parallel_size,
    )


def _group(group: Any, cache_dtype: str) -> Group:
    spec, layers = group.kv_cache_spec, len(group.layer_names)
    kind = {"FullAttentionSpec": "full", "SlidingWindowSpec": "window", "MLAAttentionSpec": "latent"}
    window = getattr(spec, "sliding_window", None)
    dtype = cache_dtype if cache_dtype not in ("auto", "bfloat16", "float16") else str(spec.dtype)
    page = int(spec.page_size_bytes)
    real = int(getattr(spec, "real_page_size_bytes", page))
    return Group(
        kind=kind.get(type(spec).__name__, type(spec).__name__),
        layers=layers,
        block_size=int(spec.block_size),
        page_bytes=page * layers,
        token_bytes=real * layers // int(spec.block_size),
        dtype=dtype.removeprefix("torch."),
        window=int(window) if window else None,
    )


def memory_of(
    pool: Pool,
    shape: ModelShape | None,
    kv: KVConfig,
    prompt: Prompt,
    output_tokens: int,
    peak_blocks: Sequence[int],
    *,
    preempted: bool,
) -> KVUsage:
    """A finished request's memory over all ranks. After a preemption its blocks say nothing, so they are left out."""
    stored = stored_tokens(prompt.token_count, output_tokens)
    held = ceil(stored / pool.split)
    logical = sum(g.token_bytes * (held if g.window is None else min(held, g.window)) for g in pool.groups)
    allocated = sum(n * g.page_bytes for n, g in zip(peak_blocks, pool.groups, strict=True)) if peak_blocks else None
    # a pipeline's scheduler knows only the layers of its first rank
    whole = kv.placement.pipeline_parallel == 1
    return replace(
        usage_by_formula(shape, stored_as(kv, shape), stored),
        logical_bytes=logical * pool.ranks if whole else None,
        allocated_bytes=None if preempted or allocated is None or not whole else allocated * pool.ranks,
        pool_bytes=pool.pool_bytes * pool.ranks if whole else None,
        source="measured_blocks",
    )
