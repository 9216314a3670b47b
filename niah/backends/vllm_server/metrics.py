"""A vLLM server's ``/metrics``: load and cache readings, and how its KV pool is cut into blocks.

Names: vLLM ``v1/metrics/loggers.py``; older servers say ``gpu_cache_usage_perc`` and ``gpu_prefix_cache_*``.
Format: Prometheus text exposition 0.0.4, which OpenMetrics extends with exemplars after ``#``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from niah.kv.config import KVConfig
from niah.kv.memory.totals import kv_bytes
from niah.models.shape import ModelShape

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
# our reading -> names of the metric, newest first; counters end in _total in the text format
_GAUGES = {
    "kv_cache_usage_perc": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "num_requests_running": ("vllm:num_requests_running",),
    "num_requests_waiting": ("vllm:num_requests_waiting",),
}
_COUNTERS = {
    "prompt_tokens": ("vllm:prompt_tokens_total", "vllm:prompt_tokens"),
    "prefix_cache_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_cache_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    "num_preemptions": ("vllm:num_preemptions_total", "vllm:num_preemptions"),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of the text format."""

    name: str
    labels: Mapping[str, str]
    value: float


def parse_samples(text: str) -> list[Sample]:
    """The samples of a Prometheus text, in order; comments and lines that are not in the format are left out."""
    found = []
    for line in text.splitlines():
        sample = _parse_line(line.strip())
        if sample is not None:
            found.append(sample)
    return found


def _parse_line(line: str) -> Sample | None:
    match = _NAME.match(line)
    if match is None:
        return None
    labels: dict[str, str] = {}
    rest = line[match.end() :].lstrip()
    if rest.startswith("{"):
        position = 1
        # label values may hold any character, braces and spaces too, so they are read one by one
        while label := _LABEL.match(rest, position):
            labels[label[1]] = re.sub(r"\\.", lambda m: _ESCAPES.get(m[0], m[0]), label[2])
            position = label.end()
        rest = rest[position:].lstrip()
        if not rest.startswith("}"):
            return None
        rest = rest[1:]
    words = rest.split()
    try:
        return Sample(match[0], labels, float(words[0]))
    except (IndexError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Reading:
    """Load of a server at one moment, summed over its engines; ``values`` lacks what the server does not say."""

    values: Mapping[str, float]
    engines: int

    def get(self, name: str) -> float | None:
        return self.values.get(name)


def read_load(samples: Sequence[Sample]) -> Reading:
    """The reading of one ``/metrics`` answer. Cache usage is the mean over engines, all else their sum."""
    values: dict[str, float] = {}
    engines = 0
    for reading, names in {**_GAUGES, **_COUNTERS}.items():
        found = next((series for name in names if (series := list(_series(samples, name)))), [])
        finite = [value for value in found if math.isfinite(value)]
        if finite:
            values[reading] = sum(finite)
        if reading == "kv_cache_usage_perc":
            engines = len(finite)
            if finite:
                values[reading] /= len(finite)
    return Reading(values, engines)


def _series(samples: Sequence[Sample], name: str) -> Iterator[float]:
    return (sample.value for sample in samples if sample.name == name)


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """The engine's cache settings, from the labels of ``vllm:cache_config_info``.

    Attributes:
        dtype: vLLM's word, ``auto`` when the cache has the type of the model.
        blocks: blocks of the pool, the reserved null block included.
        block_size: tokens per block; the smallest one where groups of layers differ.
        asked_pool_bytes: what ``--kv-cache-memory-bytes`` said; the pool is that, rounded down to whole blocks.
    """

    dtype: str
    blocks: int | None = None
    block_size: int | None = None
    asked_pool_bytes: int | None = None
    prefix_caching: bool | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def element_bytes(self, shape: ModelShape | None) -> int | None:
        """Bytes of one stored element, found by which size cuts the pool into exactly this many blocks.

        None when the layers do not all keep every token, when scales lie beside the elements, when no size fits, or
        when the pool's bytes are not known.
        """
        if self.asked_pool_bytes is None or not self.blocks or self.dtype.endswith("per_token_head"):
            return None
        for size in (1, 2, 4):
            page = self._page_of(shape, size)
            if page and self.asked_pool_bytes // page == self.blocks:
                return size
        return None

    def page_bytes(self, shape: ModelShape | None, kv: KVConfig) -> int | None:
        """Bytes of one block over all layers that share it; None when it cannot be told.

        Exact for models whose layers all keep every token. Elsewhere it is pool bytes over blocks, which is too much
        by less than one part in the number of blocks.
        """
        size = self.element_bytes(shape)
        if size is not None:
            return self._page_of(shape, size)
        if self.asked_pool_bytes is not None and self.blocks:
            return self.asked_pool_bytes // self.blocks
        if shape is None or self.block_size is None or not _is_uniform(shape) or kv.keys.element == "auto":
            return None
        return kv_bytes(shape, kv, self.block_size)

    def pool_bytes(self, shape: ModelShape | None, kv: KVConfig) -> int | None:
        """Bytes of the whole pool, by blocks and their size."""
        page = self.page_bytes(shape, kv)
        return page * self.blocks if page is not None and self.blocks else self.asked_pool_bytes

    def held_bytes(self, usage: float, page_bytes: int) -> int:
        """Bytes of the blocks in use at a usage of 0–1. vLLM counts usage without the null block."""
        return round(usage * ((self.blocks or 1) - 1)) * page_bytes

    def _page_of(self, shape: ModelShape | None, element_bytes: int) -> int | None:
        if shape is None or self.block_size is None or not _is_uniform(shape):
            return None
        return self.block_size * element_bytes * sum(layer.latent or layer.elements for layer in shape.layers)


def _is_uniform(shape: ModelShape) -> bool:
    return all(layer.kind == "full" for layer in shape.layers)


def read_cache(samples: Sequence[Sample]) -> CacheInfo | None:
    """Cache settings of the first engine; None when the server does not publish them."""
    labels = next((sample.labels for sample in samples if sample.name == "vllm:cache_config_info"), None)
    if labels is None:
        return None
    caching = labels.get("enable_prefix_caching")
    return CacheInfo(
        dtype=labels.get("cache_dtype", "auto"),
        blocks=_whole(labels.get("num_gpu_blocks")),
        block_size=_whole(labels.get("block_size")),
        asked_pool_bytes=_whole(labels.get("kv_cache_memory_bytes")),
        prefix_caching=None if caching is None else caching == "True",
        labels=labels,
    )


def _whole(text: str | None) -> int | None:
    # labels are Python's str() of the setting: an unset one reads "None"
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else None
