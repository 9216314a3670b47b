"""Every KV method on random models built here: bytes, device memory, speed, logits, int8 rounding.

Needs torch and transformers, neither weights nor a network. What does not fit into the time is left out, and said so.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from niah import registry
from niah.backends.transformers.attention import register
from niah.backends.transformers.check_formats import format_problems
from niah.backends.transformers.check_structure import structure_problems
from niah.backends.transformers.load import LoadedModel, ready
from niah.backends.transformers.method import Running, Setting, open_running
from niah.errors import NiahError
from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from niah.kv.grammar import parse_one
from niah.kv.memory.totals import human_bytes, kv_bytes
from niah.models.shape import ModelShape
from niah.types import Host

GIB = 1024**3
DECODED = 16
COMBINED = ["streaming(sinks=4,window=512,positions=original)", "infini(512,update=linear)", "int8+window(512)",
            "k8v4+window(512)", "gqa(1)+int8"]  # fmt: skip
# logits of device and CPU, as a share of their spread: rounding may fall either way in a quantized cache
EXACT_LIMIT, ROUNDED_LIMIT = 1e-3, 0.1


@dataclass
class Finding:
    """One setting on one model at one length.

    Attributes:
        state: ``ok``, ``WRONG`` (a check failed), ``refused`` (with the reason) or ``left out`` (no time).
        stored_bytes: measured on the tensors; ``formula_bytes`` computed before.
        held_bytes: storages of the cache at the end; ``peak_bytes`` of the layers, with the chunk in work.
        device_peak_bytes: allocator peak above the weights: cache, activations and copies of one layer.
        prefill_ratio, decode_ratio: speed against bf16 of the same model and length.
    """

    model: str
    kv: str
    length: int
    state: str
    why: str = ""
    stored_bytes: int | None = None
    formula_bytes: int | None = None
    held_bytes: int | None = None
    peak_bytes: int | None = None
    device_peak_bytes: int | None = None
    prefill_tokens_s: float | None = None
    decode_tokens_s: float | None = None
    prefill_ratio: float | None = None
    decode_ratio: float | None = None


@dataclass
class Report:
    machine: dict[str, Any]
    findings: list[Finding] = field(default_factory=list)
    logits: list[dict[str, Any]] = field(default_factory=list)
    int8: dict[str, Any] = field(default_factory=dict)
    vllm: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def failed(self) -> list[str]:
        wrong = [f"{f.model} {f.kv} at {f.length}: {f.why}" for f in self.findings if f.state == "WRONG"]
        wrong += [f"logits of {one['model']} {one['kv']}: {one['why']}" for one in self.logits if not one["ok"]]
        wrong += [f"vLLM {one['kv']}: {one['why']}" for one in self.vllm if one["state"] == "WRONG"]
        return wrong + ([] if self.int8.get("ok") else [f"int8 rounding: {self.int8}"])


def main() -> int:
    args = _arguments()
    deadline = time.monotonic() + 60 * args.minutes
    device = torch.device(args.device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    started, report = time.monotonic(), Report(_machine(device))
    print(json.dumps(report.machine))
    with torch.inference_mode():
        report.int8 = int8_rounding(device)
        print(f"int8 rounding: {report.int8}")
        report.logits = list(logits_against_cpu(device))
        # a sixth of the time is kept for vLLM, where it is there
        until = deadline - (60 * args.minutes / 6 if importlib.util.find_spec("vllm") else 0)
        measure_all(report, device, args.lengths, until, small=args.small)
    report.vllm = list(vllm_presets(deadline))
    report.seconds = round(time.monotonic() - started, 1)
    args.out.write_text(json.dumps(asdict(report), indent=1), encoding="utf-8")
    _table(report)
    wrong = report.failed()
    print(f"\n{report.seconds:.0f} s; all numbers in {args.out}")
    print("WRONG:\n  " + "\n  ".join(wrong) if wrong else "All checks passed.")
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--small", action="store_true", help="tiny models and lengths, to try the script on a CPU")
    parser.add_argument("--minutes", type=float, default=7.5)
    parser.add_argument("--lengths", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--out", type=Path, default=Path("gpu_check.json"))
    args = parser.parse_args()
    args.lengths = args.lengths or ([200, 600, 1_200] if args.small else [4_096, 32_768, 131_072])
    return args


def _machine(device: torch.device) -> dict[str, Any]:
    import transformers

    found = {"device": str(device), "torch": torch.__version__, "transformers": transformers.__version__}
    if device.type == "cuda":
        card = torch.cuda.get_device_properties(device)
        found |= {"gpu": card.name, "memory_bytes": card.total_memory, "capability": f"{card.major}.{card.minor}"}
    return found | {"python": platform.python_version()}


def settings() -> list[KVConfig]:
    """Every preset once, the reference first, then combinations; ``auto`` is bf16 by another name."""
    found = [parse_one("bf16")]
    for name in registry.names("kv"):
        preset = registry.load("kv", name)
        required = [key for key, default in (preset.parameters or {}).items() if default is None]
        if name not in ("bf16", "auto") and (preset.example or not required):
            found.append(parse_one(preset.example or name))
    known = {kv.name for kv in found}
    return found + [kv for kv in map(parse_one, COMBINED) if kv.name not in known]


# --- models -----------------------------------------------------------------------------------------------------------


def llama(*, small: bool) -> tuple[type, Any]:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = (
        {"hidden_size": 128, "intermediate_size": 128} if small else {"hidden_size": 2048, "intermediate_size": 4096}
    )
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32 if small else 128}
    if not small:
        heads |= {"num_attention_heads": 16, "num_key_value_heads": 4}
    return LlamaForCausalLM, LlamaConfig(num_hidden_layers=2 if small else 8, **_common(small=small), **sizes, **heads)


def gemma3(*, small: bool) -> tuple[type, Any]:
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    sizes = (
        {"hidden_size": 128, "intermediate_size": 128} if small else {"hidden_size": 1152, "intermediate_size": 2304}
    )
    layers = ["sliding_attention"] * (1 if small else 5) + ["full_attention"]
    return Gemma3ForCausalLM, Gemma3TextConfig(
        num_hidden_layers=2 * len(layers) if small else 12,
        layer_types=layers * 2,
        sliding_window=64 if small else 512,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=32 if small else 256,
        **_common(small=small),
        **sizes,
    )


def deepseek(*, small: bool) -> tuple[type, Any]:
    """MLA with the latent of DeepSeek-V2 and V3: 512 elements and 64 of rotary key."""
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

    return DeepseekV3ForCausalLM, DeepseekV3Config(
        num_hidden_layers=2 if small else 4,
        first_k_dense_replace=8,
        hidden_size=128 if small else 1024,
        intermediate_size=128 if small else 2048,
        num_attention_heads=4 if small else 16,
        num_key_value_heads=4 if small else 16,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        qk_nope_head_dim=32 if small else 128,
        v_head_dim=32 if small else 128,
        q_lora_rank=None,
        **_common(small=small),
    )


def _common(*, small: bool) -> dict[str, Any]:
    return {"vocab_size": 128 if small else 4096, "max_position_embeddings": 262_144, "eos_token_id": 2,
            "bos_token_id": 1, "pad_token_id": 0, "attn_implementation": register()}  # fmt: skip


MODELS = {"llama": llama, "gemma3": gemma3, "deepseek": deepseek}


def built(name: str, device: torch.device, dtype: torch.dtype, *, small: bool) -> tuple[LoadedModel, ModelShape]:
    kind, config = MODELS[name](small=small)
    torch.manual_seed(0)
    loaded = ready(kind(config).to(dtype).eval().to(device), register())
    return loaded, ModelShape.from_config(config.to_dict(), name=name)


def refusal(kv: KVConfig, shape: ModelShape, device: torch.device) -> str:
    host = Host(device=device.type, cores=torch.get_num_threads())
    problems = [*format_problems(kv, shape), *structure_problems(kv, shape, host, on_cpu=device.type == "cpu")]
    reasons = [problem.reason for problem in problems]
    if kv.block_size is not None or kv.native:
        reasons.append("an engine's own way to lay out the cache")
    if kv.placement.context_parallel > 1:
        reasons.append("needs one device per rank and weights on disk; the tests run it on a CPU")
    return "; ".join(reasons)


# --- checks -----------------------------------------------------------------------------------------------------------


def int8_rounding(device: torch.device) -> dict[str, Any]:
    """Codes and scales on the device against the rule computed in fp64 on the CPU."""
    from niah.backends.transformers.formats.int8 import Int8TokenHead

    states = torch.randn(1, 4, 2048, 128, generator=torch.Generator().manual_seed(1)) * 3
    codes, scale = (part.cpu() for part in Int8TokenHead().encode(states.to(device)))
    wide = states.double()
    expected_scale = (wide.abs().amax(-1, keepdim=True) / 127).clamp_min(1e-6)
    exact = wide / expected_scale
    expected = torch.sign(exact) * torch.floor(exact.abs() + 0.5)
    differ = codes.double() != expected
    # a value within fp32's error of a half may fall on either side of it
    edge = ((exact.abs() % 1) - 0.5).abs() < 1e-4
    scales_agree = torch.allclose(scale.double(), expected_scale, rtol=1e-6)
    return {"ok": scales_agree and not bool((differ & ~edge).any()), "codes": codes.numel(),
            "differ_at_halves": int(differ.sum()), "scales_agree": scales_agree}  # fmt: skip


def logits_against_cpu(device: torch.device) -> Iterator[dict[str, Any]]:
    """The same small model, setting and tokens on the device and on the CPU, in fp32."""
    cpu = torch.device("cpu")
    ids = torch.randint(3, 100, (700,), generator=torch.Generator().manual_seed(2)).tolist()
    for name in MODELS:
        there, shape = built(name, device, torch.float32, small=True)
        here, _ = built(name, cpu, torch.float32, small=True)
        for kv in settings():
            if refusal(kv, shape, device):
                continue
            unquantized = replace(kv, keys=Plain("fp32"), values=Plain("fp32")) if kv.keys == Plain("bf16") else kv
            elsewhere = replace(unquantized, offload=None)
            logits = [_last_logits(there, unquantized, shape, ids), _last_logits(here, elsewhere, shape, ids)]
            off = float((logits[0] - logits[1]).abs().mean() / logits[1].std())
            limit = ROUNDED_LIMIT if kv.is_quantized or kv.keys.element != "bf16" else EXACT_LIMIT
            yield {"model": name, "kv": kv.name, "off": off, "ok": off < limit, "why": f"off by {off:.2e} of {limit:g}"}


def _last_logits(loaded: LoadedModel, kv: KVConfig, shape: ModelShape, ids: list[int]) -> torch.Tensor:
    with open_running(Setting(loaded, kv, shape)) as running:
        held = _filled(running, ids, 128)
        return running.prefill(held, [5], len(ids))[-1].float().cpu()


def _filled(running: Running, ids: list[int], chunk: int) -> Any:
    held = running.cache()
    running.reserve(held, len(ids) + DECODED, 0)
    for start in range(0, len(ids), chunk):
        running.prefill(held, ids[start : start + chunk], start)
    return held


# --- measurements -----------------------------------------------------------------------------------------------------


def measure_all(report: Report, device: torch.device, lengths: list[int], until: float, *, small: bool) -> None:
    """Short lengths of everything first, so that what the time cuts off is the longest."""
    dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
    models = {name: built(name, device, dtype, small=small) for name in MODELS}
    took: dict[tuple[str, str], tuple[int, float]] = {}
    for length in lengths:
        for name, (loaded, shape) in models.items():
            reference: Finding | None = None
            for kv in settings():
                finding = Finding(name, kv.name, length, "ok")
                report.findings.append(finding)
                finding.why = refusal(kv, shape, device)
                before, seconds = took.get((name, kv.name), (length, 0.0))
                # attention grows with the square of the length at worst
                if finding.why:
                    finding.state = "refused"
                elif time.monotonic() + seconds * (length / before) ** 2 > until:
                    finding.state, finding.why = "left out", "no time"
                else:
                    took[name, kv.name] = length, measure(finding, loaded, kv, shape, chunk=128 if small else 2048)
                    reference = reference or finding
                    _compare(finding, reference)
                if length == lengths[0] or finding.state != "refused":
                    print(_line(finding), flush=True)


def measure(finding: Finding, loaded: LoadedModel, kv: KVConfig, shape: ModelShape, chunk: int) -> float:
    """Prefill and decode; returns the seconds taken."""
    started = time.monotonic()
    ids = torch.randint(3, 100, (finding.length,), generator=torch.Generator().manual_seed(3)).tolist()
    try:
        with open_running(Setting(loaded, kv, shape)) as running:
            _measure(finding, running, ids, chunk)
    except (torch.OutOfMemoryError, RuntimeError, NiahError, ValueError) as err:
        finding.state, finding.why = "WRONG", f"{type(err).__name__}: {str(err).splitlines()[0][:200]}"
    return time.monotonic() - started


def _measure(finding: Finding, running: Running, ids: list[int], chunk: int) -> None:
    device, total = running.loaded.device, len(ids) + DECODED
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
    start = _now(device)
    held = _filled(running, ids, chunk)
    filled = _now(device)
    logits = running.prefill(held, [5], len(ids))
    for at in range(len(ids) + 1, total):
        logits = running.prefill(held, [int(logits[-1].argmax())], at)
    done = _now(device)
    finding.prefill_tokens_s, finding.decode_tokens_s = len(ids) / (filled - start), DECODED / (done - filled)
    finding.stored_bytes, finding.formula_bytes = running.logical_bytes(held, total), None
    finding.formula_bytes = kv_bytes(running.shape, running.kv, total)
    storages = {key: size for layer in running.layers(held) for key, size in layer.storages().items()}
    finding.held_bytes, finding.peak_bytes = sum(storages.values()), running.allocated_bytes(held)
    if device.type == "cuda":
        finding.device_peak_bytes = torch.cuda.max_memory_allocated(device) - before
    if finding.stored_bytes != finding.formula_bytes:
        finding.state, finding.why = "WRONG", f"{finding.stored_bytes} B stored, {finding.formula_bytes} B by formula"
    elif not bool(torch.isfinite(logits).all()):
        finding.state, finding.why = "WRONG", "logits are not finite"
    elif (
        finding.device_peak_bytes is not None
        and not running.kv.placement.offload
        and finding.device_peak_bytes < finding.held_bytes
    ):
        finding.state, finding.why = "WRONG", "the allocator's peak is below the storages"


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _compare(finding: Finding, reference: Finding) -> None:
    if (
        finding.prefill_tokens_s
        and finding.decode_tokens_s
        and reference.prefill_tokens_s
        and reference.decode_tokens_s
    ):
        finding.prefill_ratio = finding.prefill_tokens_s / reference.prefill_tokens_s
        finding.decode_ratio = finding.decode_tokens_s / reference.decode_tokens_s


# --- vLLM -------------------------------------------------------------------------------------------------------------


def vllm_presets(deadline: float) -> Iterator[dict[str, Any]]:
    """Presets that vLLM has, each in a process of its own, on a random Llama; nothing where vLLM is not installed."""
    if importlib.util.find_spec("vllm") is None:
        yield {"kv": "-", "state": "left out", "why": "vLLM is not installed"}
        return
    import subprocess

    from niah.engines.vllm.check import WORDS, problems

    shape = ModelShape.from_config(llama(small=False)[1].to_dict(), name="llama")
    capability = torch.cuda.get_device_capability() if torch.cuda.is_available() else None
    host = Host(device="cuda" if capability else "cpu", cores=1, bf16=True, compute_capability=capability)
    for name in (word for word in WORDS if word != "auto"):
        refused = problems(parse_one(name), shape, host)
        left = deadline - time.monotonic()
        if refused or left < 20:
            state, why = ("refused", refused[0].reason) if refused else ("left out", "no time")
            yield {"kv": name, "state": state, "why": why}
            continue
        command = [sys.executable, str(Path(__file__).with_name("gpu_check_vllm.py")), WORDS[name]]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
            lines = ended.stdout.strip().splitlines() or ended.stderr.strip().splitlines() or ["nothing said"]
            state, why = ("ok" if ended.returncode == 0 else "WRONG"), lines[-1][:300]
            why += f"; {kv_bytes(shape, parse_one(name), 1):,} bytes per token by formula"
        except subprocess.TimeoutExpired:
            state, why = "left out", "no time"
        print(f"vLLM {name}: {state} {why}", flush=True)
        yield {"kv": name, "state": state, "why": why}


# --- output -----------------------------------------------------------------------------------------------------------


def _line(finding: Finding) -> str:
    head = f"{finding.model:<9}{finding.kv:<46}{finding.length:>8,} {finding.state:<9}"
    if finding.stored_bytes is None or finding.prefill_tokens_s is None or finding.decode_tokens_s is None:
        return f"{head}{finding.why[:90]}"
    peak = "-" if finding.device_peak_bytes is None else human_bytes(finding.device_peak_bytes)
    speed = f"{finding.prefill_tokens_s:>10,.0f} ({finding.prefill_ratio or 1:4.2f} x)"
    decode = f"{finding.decode_tokens_s:>8,.1f} ({finding.decode_ratio or 1:4.2f} x)"
    return f"{head}{human_bytes(finding.stored_bytes):>12}{peak:>12}{speed}{decode} {finding.why}"


def _table(report: Report) -> None:
    sizes = f"{'tokens':>8} {'state':<9}{'KV bytes':>12}{'peak':>12}"
    print(f"\n{'model':<9}{'setting':<46}{sizes}{'prefill/s':>19}{'decode/s':>17}")
    for finding in report.findings:
        if finding.state != "refused":
            print(_line(finding))
    refused = {(f.model, f.kv, f.why) for f in report.findings if f.state == "refused"}
    print(f"\nrefused, as the models have no such cache or this machine cannot: {len(refused)}")
    for model, kv, why in sorted(refused):
        print(f"  {model:<9}{kv:<46}{why[:100]}")
    worst = max(report.logits, key=lambda one: one["off"], default={"off": 0.0, "model": "-", "kv": "-"})
    print(f"\nlogits against the CPU: {sum(one['ok'] for one in report.logits)} of {len(report.logits)} within limits, "
          f"worst {worst['off']:.2e} of the spread ({worst['model']}, {worst['kv']})")  # fmt: skip
    print(f"int8 rounding: {report.int8}")
    for one in report.vllm:
        print(f"vLLM {one['kv']}: {one['state']} {one['why']}")


if __name__ == "__main__":
    sys.exit(main())
