"""Shapes of well-known models, so that memory can be planned without a network: what their published configs say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from niah.errors import ConfigError, near
from niah.models.shape import ModelShape


def _dense(
    model_type: str, layers: int, hidden: int, heads: tuple[int, int], mlp: int, vocab: int, context: int, **more: Any
) -> dict[str, Any]:
    """A config with the keys that most families share; ``heads`` are (query heads, KV heads)."""
    return {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        "intermediate_size": mlp,
        "vocab_size": vocab,
        "max_position_embeddings": context,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        **more,
    }


def _gemma3(layers: int, hidden: int, heads: tuple[int, int], head_dim: int, mlp: int, window: int) -> dict[str, Any]:
    # the small ones were trained for 32k and are text only, which shows in the vocabulary
    small = layers < 30
    return _dense(
        "gemma3_text",
        layers,
        hidden,
        heads,
        mlp,
        262_144 if small else 262_208,
        32_768 if small else 131_072,
        head_dim=head_dim,
        sliding_window=window,
        sliding_window_pattern=6,
        tie_word_embeddings=True,
    )


def _gpt_oss(layers: int, experts: int) -> dict[str, Any]:
    return _dense(
        "gpt_oss",
        layers,
        2880,
        (64, 8),
        2880,
        201_088,
        131_072,
        head_dim=64,
        sliding_window=128,
        num_local_experts=experts,
        quantization_config={"quant_method": "mxfp4"},
    )


def _deepseek(
    version: int, layers: int, hidden: int, heads: int, mlp: int, vocab: int, experts: tuple[int, int, int], **more: Any
) -> dict[str, Any]:
    """``experts`` are (routed, shared, size)."""
    return _dense(
        f"deepseek_v{version}",
        layers,
        hidden,
        (heads, heads),
        mlp,
        vocab,
        163_840,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        v_head_dim=128,
        n_routed_experts=experts[0],
        n_shared_experts=experts[1],
        moe_intermediate_size=experts[2],
        **more,
    )


_HALF = {"torch_dtype": "float16"}
_TIED = {"tie_word_embeddings": True}
_QWEN = {"sliding_window": 32_768, "use_sliding_window": False}
_HEAD_128 = {"head_dim": 128}

# name -> (config, published parameters)
_ZOO: Mapping[str, tuple[dict[str, Any], int]] = {
    "llama-2-7b": (_dense("llama", 32, 4096, (32, 32), 11_008, 32_000, 4096, **_HALF), 6_738_415_616),
    "llama-2-70b": (_dense("llama", 80, 8192, (64, 8), 28_672, 32_000, 4096, **_HALF), 68_976_648_192),
    "llama-3.1-8b": (_dense("llama", 32, 4096, (32, 8), 14_336, 128_256, 131_072), 8_030_261_248),
    "llama-3.1-70b": (_dense("llama", 80, 8192, (64, 8), 28_672, 128_256, 131_072), 70_553_706_496),
    "llama-3.2-1b": (
        _dense("llama", 16, 2048, (32, 8), 8192, 128_256, 131_072, head_dim=64, **_TIED),
        1_235_814_400,
    ),
    "llama-3.2-3b": (
        _dense("llama", 28, 3072, (24, 8), 8192, 128_256, 131_072, **_HEAD_128, **_TIED),
        3_212_749_824,
    ),
    "llama-3.3-70b": (_dense("llama", 80, 8192, (64, 8), 28_672, 128_256, 131_072), 70_553_706_496),
    "mistral-7b": (
        _dense("mistral", 32, 4096, (32, 8), 14_336, 32_000, 32_768, sliding_window=4096),
        7_241_732_096,
    ),
    "mistral-7b-v0.2": (_dense("mistral", 32, 4096, (32, 8), 14_336, 32_000, 32_768), 7_241_732_096),
    "mistral-7b-v0.3": (_dense("mistral", 32, 4096, (32, 8), 14_336, 32_768, 32_768), 7_248_023_552),
    "qwen2.5-0.5b": (_dense("qwen2", 24, 896, (14, 2), 4864, 151_936, 32_768, **_QWEN, **_TIED), 494_032_768),
    "qwen2.5-1.5b": (_dense("qwen2", 28, 1536, (12, 2), 8960, 151_936, 32_768, **_QWEN, **_TIED), 1_543_714_304),
    "qwen2.5-7b": (_dense("qwen2", 28, 3584, (28, 4), 18_944, 152_064, 32_768, **_QWEN), 7_615_616_512),
    "qwen2.5-14b": (_dense("qwen2", 48, 5120, (40, 8), 13_824, 152_064, 32_768, **_QWEN), 14_770_033_664),
    "qwen2.5-32b": (_dense("qwen2", 64, 5120, (40, 8), 27_648, 152_064, 32_768, **_QWEN), 32_763_876_352),
    "qwen2.5-72b": (_dense("qwen2", 80, 8192, (64, 8), 29_568, 152_064, 32_768, **_QWEN), 72_706_203_648),
    "qwen3-0.6b": (_dense("qwen3", 28, 1024, (16, 8), 3072, 151_936, 40_960, **_HEAD_128, **_TIED), 596_049_920),
    "qwen3-4b": (_dense("qwen3", 36, 2560, (32, 8), 9728, 151_936, 40_960, **_HEAD_128, **_TIED), 4_022_468_096),
    "qwen3-8b": (_dense("qwen3", 36, 4096, (32, 8), 12_288, 151_936, 40_960, **_HEAD_128), 8_190_735_360),
    "qwen3-14b": (_dense("qwen3", 40, 5120, (40, 8), 17_408, 151_936, 40_960, **_HEAD_128), 14_768_307_200),
    "qwen3-32b": (_dense("qwen3", 64, 5120, (64, 8), 25_600, 151_936, 40_960, **_HEAD_128), 32_762_123_264),
    "gemma-3-270m": (_gemma3(18, 640, (4, 1), 256, 2048, 512), 268_098_176),
    "gemma-3-1b": (_gemma3(26, 1152, (4, 1), 256, 6912, 512), 999_885_952),
    # from 4B on the published count includes a vision tower of 0.42 billion
    "gemma-3-4b": (_gemma3(34, 2560, (8, 4), 256, 10_240, 1024), 4_300_079_472),
    "gemma-3-12b": (_gemma3(48, 3840, (16, 8), 256, 15_360, 1024), 12_187_325_040),
    "gemma-3-27b": (_gemma3(62, 5376, (32, 16), 128, 21_504, 1024), 27_432_406_640),
    "gpt-oss-20b": (_gpt_oss(24, 32), 20_914_757_184),
    "gpt-oss-120b": (_gpt_oss(36, 128), 116_829_156_672),
    "deepseek-v2-lite": (
        _deepseek(2, 27, 2048, 16, 10_944, 102_400, (64, 2, 1408), first_k_dense_replace=1),
        15_706_484_224,
    ),
    "deepseek-v2": (
        _deepseek(2, 60, 5120, 128, 12_288, 102_400, (160, 2, 1536), first_k_dense_replace=1, q_lora_rank=1536),
        235_741_434_880,
    ),
    "deepseek-v3": (
        _deepseek(
            3,
            61,
            7168,
            128,
            18_432,
            129_280,
            (256, 1, 2048),
            first_k_dense_replace=3,
            q_lora_rank=1536,
            quantization_config={"quant_method": "fp8"},
        ),
        671_026_419_200,
    ),
    "smollm2-135m": (_dense("llama", 30, 576, (9, 3), 1536, 49_152, 8192, **_TIED), 134_515_008),
    "smollm2-360m": (_dense("llama", 32, 960, (15, 5), 2560, 49_152, 8192, **_TIED), 361_821_120),
    "smollm2-1.7b": (_dense("llama", 24, 2048, (32, 32), 8192, 49_152, 8192, **_TIED), 1_711_376_384),
    "starcoder-15b": (
        {
            "model_type": "gpt_bigcode",
            "n_layer": 40,
            "n_head": 48,
            "n_embd": 6144,
            "n_inner": 24_576,
            "n_positions": 8192,
            "vocab_size": 49_152,
            "multi_query": True,
        },
        15_517_456_384,
    ),
}
# other names of the same shapes
_ALIASES: Mapping[str, str] = {
    "smollm2": "smollm2-135m",
    "mistral-7b-v0.1": "mistral-7b",
    "starcoder": "starcoder-15b",
    "deepseek-r1": "deepseek-v3",
}
# what hub names add to a model's name without changing its shape
_SUFFIXES = re.compile(r"-(?:hf|instruct|chat|it|pt|base|gguf|0324|0528)(?=-|$)")


def _key(name: str) -> str:
    """A name as it is compared: tail of ``org/name``, lower case, without maker's prefix, tuning words and hyphens."""
    tail = _SUFFIXES.sub("", name.strip().lower().rstrip("/").rsplit("/", 1)[-1])
    return re.sub(r"[-_ ]", "", tail.removeprefix("meta-"))


@cache
def _index() -> dict[str, str]:
    return {_key(name): name for name in _ZOO} | {_key(alias): name for alias, name in _ALIASES.items()}


def builtin_names() -> list[str]:
    """Names of all built-in shapes, sorted."""
    return sorted(_ZOO)


def find_builtin(name: str) -> ModelShape | None:
    """The built-in shape of a name such as ``llama-2-70b`` or ``meta-llama/Llama-2-70b-hf``, or None."""
    known = _index().get(_key(name))
    return None if known is None else _build(known)


def builtin_shape(name: str) -> ModelShape:
    """As ``find_builtin``.

    Raises:
        ConfigError: no built-in model has that name (a near one is offered).
    """
    shape = find_builtin(name)
    if shape is None:
        raise ConfigError(
            f"no built-in model shape named {name!r}.{near(name.rsplit('/', 1)[-1], builtin_names())} "
            "A folder with a config.json works for any other model."
        )
    return shape


@cache
def _build(name: str) -> ModelShape:
    config, parameters = _ZOO[name]
    return ModelShape.from_config(config, name, parameters)
