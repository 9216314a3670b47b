"""What a vLLM server reports: its model, version, longest prompt and cache, and the settings in force from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from niah.backends.vllm_server.metrics import CacheInfo
from niah.engines.vllm.arguments import DTYPES, ELEMENTS
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server reports.

    Attributes:
        model: the name under which the model is asked for.
        cache: None when it publishes no metrics.
        asked_word: what ``--kv-cache-dtype`` was given; empty for a server that was not started here.
        compute_dtype: as it was started; empty when not started here.
    """

    model: str
    base_url: str
    version: str
    max_model_len: int | None
    cache: CacheInfo | None
    asked_word: str = ""
    compute_dtype: str = ""

    def effective(self, kv: KVConfig, shape: ModelShape | None) -> dict[str, Any]:
        """Flat names and values for the record of settings in force."""
        values: dict[str, Any] = {
            "kv.asked": kv.name,
            "server": "started for this run" if self.asked_word else self.base_url,
            "served_model": self.model,
            "vllm": self.version,
            "max_model_len": self.max_model_len,
            "compute_dtype": self.compute_dtype or None,
            "kv.cache_dtype_asked": self.asked_word or None,
        }
        if self.cache is not None:
            stored = self._stored()
            values |= {
                "kv.cache_dtype": self.cache.dtype,
                "kv.k_dtype": stored,
                "kv.v_dtype": stored,
                "kv.block_size": self.cache.block_size,
                "kv.page_bytes": self.cache.page_bytes(shape, kv),
                "kv.pool_bytes": self.cache.pool_bytes(shape, kv),
                "kv.pool_blocks": self.cache.blocks,
                "kv.element_bytes": self.cache.element_bytes(shape),
                "kv.skip_layers": self.cache.labels.get("kv_cache_dtype_skip_layers"),
                "prefix_caching": self.cache.prefix_caching,
            }
        return {name: value for name, value in values.items() if value is not None}

    def _stored(self) -> str | None:
        """Our name of the stored type; for ``auto`` only what the server was started with says it."""
        word = self.cache.dtype if self.cache is not None else "auto"
        if word == "auto":
            word = self.compute_dtype
        names = {**ELEMENTS, **{engine: ours for ours, engine in DTYPES.items()}, "fp8": "fp8_e4m3"}
        return names.get(word)
