"""Small random models of every family that transformers has, asked at 1k and compared with plain forward passes.

What a family computes shows in random weights as well as in trained ones; what it knows does not matter here.
``python -m tests.helpers.families`` writes the table of ``docs/models.md``; a test runs a part of it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from niah.backends.transformers.load import check_positions, load_model
from niah.backends.transformers.model_check import compare, context_lengths, switch_lengths
from niah.backends.transformers.options import TransformersOptions
from niah.backends.transformers.plugin import PLUGIN
from niah.engines.base import ModelInfo
from niah.errors import NiahError
from niah.kv.config import KVConfig
from niah.models.shape import ModelShape
from niah.prompts.tokens import COMPLETION, WordTokenizer
from niah.types import Host

VOCABULARY = 512
CONTEXT = 1000
LONGEST = 1024
OPTIONS = TransformersOptions(device="cpu", dtype="fp32", threads=1)

# names that families have for the same sizes
_SIZES: dict[int, tuple[str, ...]] = {
    VOCABULARY: ("vocab_size",),
    128: ("hidden_size", "n_embd", "d_model", "dim", "intermediate_size", "n_inner", "ffn_dim", "lru_width"),
    32: ("v_head_dim", "qk_nope_head_dim", "moe_intermediate_size", "kv_lora_rank", "attention_head_dim"),
    48: ("q_lora_rank",),
    16: ("qk_rope_head_dim", "rotary_dim"),
    8: ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    4: (
        *("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
        *("num_attention_heads", "n_head", "n_heads", "num_heads"),
    ),
    2: ("num_key_value_heads", "num_kv_heads", "n_head_kv", "num_experts_per_tok", "num_experts_per_token", "moe_k"),
    1: ("n_group", "topk_group", "first_k_dense_replace", "n_shared_experts", "num_shared_experts"),
    256: ("sliding_window",),
    2048: ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "max_sequence_length"),
}
# what a few families need besides
_SPECIAL: dict[str, dict[str, Any]] = {
    "gemma3n_text": {"num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"] * 2},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]], "window_size": 256},
}


def _rope(kind: str, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 1e4, "factor": 4.0, **more}}


_LONG = {"short_factor": [1.0] * 16, "long_factor": [1.0 + 3 * i for i in range(16)]}
# members of a family that compute otherwise: name, family and settings
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "falcon (ALiBi)": ("falcon", {"alibi": True, "multi_query": False, "new_decoder_architecture": False}),
    "falcon (one KV head)": ("falcon", {"multi_query": True, "new_decoder_architecture": False}),
    "llama (dynamic)": ("llama", {"max_position_embeddings": 512, **_rope("dynamic")}),
    "llama (llama3)": (
        "llama",
        _rope("llama3", original_max_position_embeddings=512, low_freq_factor=1.0, high_freq_factor=4.0),
    ),
    "llama (linear)": ("llama", _rope("linear")),
    "llama (yarn)": ("llama", _rope("yarn", original_max_position_embeddings=512)),
    "phi3 (longrope)": (
        "phi3",
        {"original_max_position_embeddings": 512, **_rope("longrope", original_max_position_embeddings=512, **_LONG)},
    ),
    "qwen2 (window)": ("qwen2", {"use_sliding_window": True, "sliding_window": 256, "max_window_layers": 2}),
}


@dataclass(frozen=True)
class Outcome:
    """``how`` is ``equal`` (``widest_nats``: how far), ``refused`` (``why``: by which sentence) or ``not built``."""

    name: str
    how: str
    why: str = ""
    widest_nats: float = 0.0
    attention: str = ""


def families() -> list[str]:
    """All families with a causal language model, and the variants."""
    return sorted([*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *VARIANTS])


def build(name: str, folder: Path, **settings: Any) -> Path:
    """A model of the family with sharp random weights, saved under ``folder``; returns where.

    Args:
        settings: of its config, instead of small ones.

    Raises:
        Exception: whatever the library says to so small a model.
    """
    family, more = VARIANTS.get(name, (name, {}))
    config = CONFIG_MAPPING[family](**{**_small(family), **_SPECIAL.get(family, {}), **more, **settings})
    torch.manual_seed(7)
    made = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)](config).eval()
    with torch.no_grad():
        for part, weight in made.named_parameters():
            if weight.dim() > 1 and not any(word in part for word in ("embed", "wte", "wpe")):
                weight.mul_(6.0)
        # sharp answers: of nearly even ones a fault would change little
        made.get_output_embeddings().weight.mul_(10.0)
    made.save_pretrained(folder)
    return folder


def _small(family: str) -> dict[str, Any]:
    """Settings of a family's config for a small model; keys that the family does not have are left out."""
    kind = CONFIG_MAPPING[family]
    plain = kind()
    if plain.get_text_config() is not plain:
        raise ValueError("its text part is a section of the config, and a family of its own")
    settings: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    for size, names in _SIZES.items():
        settings |= {name: size for name in names if isinstance(getattr(plain, name, None), int)}
    if "kv_lora_rank" in settings:
        settings |= {"num_key_value_heads": 4, "num_experts_per_tok": 2}  # the latent serves all heads
    elif isinstance(getattr(plain, "head_dim", None), int):
        settings["head_dim"] = 32
    return {name: value for name, value in settings.items() if not isinstance(getattr(kind, name, None), property)}


def outcome(name: str, folder: Path) -> Outcome:
    """What comes of asking one family, in the order in which a run would find it out."""
    try:
        build(name, folder)
    except Exception as err:  # noqa: BLE001 - a family that does not take such sizes is said so
        return Outcome(name, "not built", f"{type(err).__name__}: {(str(err) or type(err).__name__).splitlines()[0]}")
    try:
        check_positions(str(folder), OPTIONS)
        shape = ModelShape.from_config(AutoConfig.from_pretrained(folder).to_dict(), name)
        problems = PLUGIN.problems(OPTIONS, KVConfig("bf16"), shape, Host())
        if problems:
            return Outcome(name, "refused", problems[0].reason)
        info = ModelInfo(name, str(folder), "", WordTokenizer(), COMPLETION, shape=shape)
        loaded = load_model(OPTIONS, info)
        contexts = context_lengths(shape, switch_lengths(loaded), LONGEST)
        found = compare(loaded, info, OPTIONS, sorted({*contexts, CONTEXT}))
    except NiahError as err:
        return Outcome(name, "refused", str(err).replace(str(folder), name))
    return Outcome(name, "equal", widest_nats=found.widest_nats, attention=loaded.attention)


def run(names: Sequence[str]) -> list[Outcome]:
    """One after the other, each in a folder of its own."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    found = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            found.append(outcome(name, Path(folder)))
        print(found[-1], file=sys.stderr, flush=True)
    return found


def table(found: Sequence[Outcome]) -> str:
    """The page's table."""
    lines = ["| family | at 1k against a plain pass | attention, or why not |", "| --- | --- | --- |"]
    for one in found:
        what = f"equal within {one.widest_nats:.0e} nats" if one.how == "equal" else one.how
        why = {"niah_sdpa": "SDPA"}.get(one.attention, one.attention) or _short(one.why)
        lines.append(f"| {one.name} | {what} | {why} |")
    return "\n".join(lines)


def _short(why: str) -> str:
    first = why.partition(". ")[0].partition(", so that questions")[0].replace("|", "/")
    return first if len(first) <= 160 else f"{first[:160]}…"


# nested configs with large defaults for their other parts would take gigabytes
_TOO_LARGE = ("blt", "phi4_multimodal")
MARK = "<!-- table: python -m tests.helpers.families -->"


def main() -> None:
    names = sys.argv[1:] or [name for name in families() if name not in _TOO_LARGE]
    found = [replace(one, why=" ".join(one.why.split())) for one in run(names)]
    page = Path("docs/models.md")
    before = page.read_text(encoding="utf-8").split(MARK)[0]
    page.write_text(f"{before}{MARK}\n\n{table([one for one in found if one.how != 'not built'])}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
