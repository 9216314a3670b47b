"""These tests run in .venv-vllm, where vLLM's CPU build is. Compute is fp32 where nothing else is asked:

without bf16 hardware vLLM's bf16 runs at a sixth of that speed.
"""

from __future__ import annotations

import os

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed in this environment: make test runs these in .venv-vllm")

# engines of two test processes would all be bound to the first core
_worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if _worker and hasattr(os, "sched_getaffinity"):
    _cores = sorted(os.sched_getaffinity(0))
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", str(_cores[int(_worker.removeprefix("gw")) % len(_cores)]))

# vLLM and what it brings warn while they are imported; those warnings are not ours to mend
FILTERS = ("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning", "ignore::ResourceWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/vllm" in str(item.path):
            # a module's first test starts an engine, which may take minutes
            item.add_marker(pytest.mark.timeout(600))
            for text in (*FILTERS, "ignore::pytest.PytestUnraisableExceptionWarning"):
                item.add_marker(pytest.mark.filterwarnings(text))


@pytest.fixture(scope="session")
def has_avx512() -> bool:
    from niah.runner.host import this_host

    return any(flag.startswith(("avx512f", "amx_tile")) for flag in this_host().cpu_flags)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
