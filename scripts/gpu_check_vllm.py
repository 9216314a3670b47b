"""One KV dtype of vLLM on a random Llama: loads, generates, and prints bytes per block; for ``gpu_check.py``."""

from __future__ import annotations

import json
import os
import sys
import tempfile

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"


def main(dtype: str) -> None:
    from transformers import LlamaConfig
    from vllm import LLM, SamplingParams

    config = LlamaConfig(
        vocab_size=4096,
        hidden_size=2048,
        intermediate_size=4096,
        num_hidden_layers=8,
        num_attention_heads=16,
        num_key_value_heads=4,
        head_dim=128,
        max_position_embeddings=8192,
        architectures=["LlamaForCausalLM"],
        dtype="bfloat16",
    )
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        engine = LLM(
            model=folder,
            load_format="dummy",
            skip_tokenizer_init=True,
            dtype="float16" if dtype == "float16" else "bfloat16",
            kv_cache_dtype="auto" if dtype in ("bfloat16", "float16") else dtype,
            enforce_eager=True,
            max_model_len=4096,
            kv_cache_memory_bytes=256 << 20,
            enable_prefix_caching=False,
        )
        prompt = {"prompt_token_ids": [5 + i % 4000 for i in range(2000)]}
        (out,) = engine.generate([prompt], SamplingParams(max_tokens=8, temperature=0.0, detokenize=False))
        scheduler = engine.llm_engine.engine_core.engine_core.scheduler
        groups = scheduler.kv_cache_config.kv_cache_groups
        block = sum(len(g.layer_names) * g.kv_cache_spec.page_size_bytes for g in groups)
        resolved = engine.llm_engine.vllm_config.cache_config.cache_dtype
        said = {"generated": len(out.outputs[0].token_ids), "resolved": str(resolved), "block_bytes": block,
                "block_tokens": groups[0].kv_cache_spec.block_size}  # fmt: skip
        print(json.dumps(said | {"bytes_per_token": block / said["block_tokens"]}))


if __name__ == "__main__":
    main(sys.argv[1])
