"""What the TurboQuant presets have in common: vLLM keeps the first and last two layers in 16 bit."""

from __future__ import annotations

from niah.kv.config import KVConfig
from niah.kv.preset import KVPreset
from niah.kv.vllm_formats import TurboQuant

# vLLM adds these to the skipped layers of every dense model (0.32, ``engine/arg_utils.py``)
SKIPPED = (0, 1, -2, -1)


def turboquant_preset(name: str, word: str, k_dtype: str, v_dtype: str, summary: str) -> KVPreset:
    """The preset of one pair of element types, which vLLM calls ``word``; it runs in vLLM's GPU kernels only."""

    def make() -> KVConfig:
        return KVConfig(
            name,
            TurboQuant(k_dtype, "keys"),
            TurboQuant(v_dtype, "values"),
            skip_layers=SKIPPED,
            prefill_reads="raw_chunk",
            native=(("kv-cache-dtype", word),),
        )

    return KVPreset(name, f"{summary}; first and last two layers in 16 bit", make, paper="arXiv:2504.19874")
