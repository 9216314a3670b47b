"""How many threads an engine gets, on machines made of files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from niah.backends.llamacpp.options import LlamaCppOptions
from niah.backends.transformers.options import TransformersOptions
from niah.engines import threads as _threads
from niah.engines.threads import cgroup_quota, default_threads, thread_places, usable_cores
from tests.helpers import ROOT

# CPU number -> what its core's hyper-threads are called; two of each, side by side or half the machine apart
PAIRED = {cpu: f"{cpu - cpu % 2}-{cpu - cpu % 2 + 1}" for cpu in range(8)}
APART = {cpu: f"{cpu % 4},{cpu % 4 + 4}" for cpu in range(8)}
PLAIN = {cpu: str(cpu) for cpu in range(8)}


def _machine(root: Path, siblings: dict[int, str], file: str = "thread_siblings_list") -> Path:
    for cpu, text in siblings.items():
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / file).write_text(text + "\n")
    return root


def _put(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize("file", ["thread_siblings_list", "core_cpus_list"])
@pytest.mark.parametrize(
    ("siblings", "allowed", "cores"),
    [
        (PLAIN, range(8), [0, 1, 2, 3, 4, 5, 6, 7]),
        (PAIRED, range(8), [0, 2, 4, 6]),
        (APART, range(8), [0, 1, 2, 3]),
        (PAIRED, [1, 2, 3], [1, 2]),
        (APART, [4, 5], [4, 5]),
        (APART, [1, 5], [1]),
        ({}, [0, 1, 2], [0, 1, 2]),
    ],
)
def test_a_core_counts_once(
    tmp_path: Path, siblings: dict[int, str], allowed: list[int], cores: list[int], file: str
) -> None:
    assert usable_cores(_machine(tmp_path, siblings, file), list(allowed)) == cores


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "250000 100000\n"}, 2.5),
        ({"sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3.0),
        # a group above limits what is below
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n",
                "sys/fs/cgroup/a/cpu.max": "150000 50000\n",
            },
            3.0,
        ),
        # a container that sees its host's path
        ({"proc/self/cgroup": "0::/docker/abc\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2.0),
        (
            {
                "proc/self/cgroup": "4:memory:/x\n3:cpu,cpuacct:/x\n0::/\n",
                "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "600000\n",
                "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000\n",
            },
            6.0,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu:/docker/abc\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
)
def test_quota_of_the_control_group(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    root = _put(_machine(tmp_path, PLAIN), **files)
    assert cgroup_quota(root) == quota
    expected = 8 if quota is None else max(1, int(quota))
    assert len(usable_cores(root, list(range(8)))) == expected


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(_threads, "usable_cores", lambda: [0, 1, 2, 3])
    monkeypatch.setattr(_threads, "_allowed", lambda: [0, 1, 2, 3, 4, 5, 6, 7])
    monkeypatch.setattr(_threads, "_is_busy", lambda cores: False)


@pytest.mark.usefixtures("four_cores")
def test_all_cores_and_one_less_where_others_work(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_threads() == 4
    assert (TransformersOptions().thread_count(), LlamaCppOptions().thread_count()) == (4, 4)
    monkeypatch.setattr(_threads, "_is_busy", lambda cores: True)
    assert default_threads() == 3
    monkeypatch.setattr(_threads, "usable_cores", lambda: [0])
    assert default_threads() == 1


@pytest.mark.usefixtures("four_cores")
@pytest.mark.parametrize(("text", "threads"), [("2", 2), ("6,2", 6), ("", 4), ("0", 4), ("many", 4)])
def test_the_environment_wins_and_an_option_over_it(monkeypatch: pytest.MonkeyPatch, text: str, threads: int) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert default_threads() == threads
    assert TransformersOptions().thread_count() == threads
    assert TransformersOptions(threads=3).thread_count() == 3


@pytest.mark.usefixtures("four_cores")
def test_places_take_each_core_before_a_second_thread_of_one() -> None:
    assert thread_places(None) == [0, 1, 2, 3]
    assert thread_places(2) == [0, 1]
    assert thread_places(6) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("others", "allowed", "cores", "busy"),
    [(0.3, 2, 2, False), (0.9, 2, 2, True), (3.0, 8, 4, False), (5.0, 8, 4, True), (40.0, 64, 4, False)],
)
def test_busy_is_when_others_leave_too_little(
    monkeypatch: pytest.MonkeyPatch, others: float, allowed: int, cores: int, busy: bool
) -> None:
    monkeypatch.setattr(_threads, "others_use", lambda seconds: others)
    monkeypatch.setattr(_threads, "_allowed", lambda: list(range(allowed)))
    assert _threads._is_busy.__wrapped__(cores) is busy


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="reads the CPUs' times as Linux keeps them")
def test_work_of_others_is_seen_and_our_own_is_not() -> None:
    before = _threads.others_use(0.3)
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as other:
        try:
            during = _threads.others_use(0.5)
        finally:
            other.kill()
    # on a machine that is full already, the newcomer takes a share from those who were there
    assert during > min(before + 0.3, len(os.sched_getaffinity(0)) - 0.5)


def test_make_limits_the_threads_of_tests_alone() -> None:
    text = (ROOT / "Makefile").read_text()
    lines = [line for line in text.splitlines() if "OMP_NUM_THREADS" in line]
    assert lines
    assert all(line.startswith("test test-vllm random proof: export") for line in lines)
