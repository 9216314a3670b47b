"""The default number of CPU threads of an engine: the cores that this process may really use.

A core counts once, however many hyper-threads it has: two of them share the units that multiply. Where the machine is
visibly busy, one core less: two busy thread pools on the same cores spin against each other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

import psutil

_VARIABLE = "OMP_NUM_THREADS"
_ROOT = Path("/")
_LOOK_S = 0.2
# cores' worth of other work at which the machine counts as busy
_BUSY_CORES = 0.5


def default_threads() -> int:
    """Threads for an engine, at least one: what ``OMP_NUM_THREADS`` says, else what ``usable_cores`` finds."""
    wanted = asked_by_environment()
    if wanted is not None:
        return wanted
    cores = len(usable_cores())
    return max(1, cores - (cores > 1 and _is_busy(cores)))


def asked_by_environment() -> int | None:
    """The number in ``OMP_NUM_THREADS``, of its outermost level; None where it holds no positive number."""
    text = os.environ.get(_VARIABLE, "").split(",")[0].strip()
    return int(text) if text.isdecimal() and int(text) > 0 else None


def thread_places(threads: int | None) -> list[int]:
    """CPUs to bind an engine's threads to, one a thread: each core's first hyper-thread, then the other ones."""
    first = usable_cores()
    allowed = _allowed()
    rest = [cpu for cpu in allowed if cpu not in first]
    return [*first, *rest][: threads or default_threads()]


def usable_cores(root: Path = _ROOT, allowed: list[int] | None = None) -> list[int]:
    """The CPUs this process may use, one for each core: by affinity, by hyper-threads, and by the cgroup's quota.

    Args:
        root: of the file system that holds ``sys`` and ``proc``.
        allowed: CPU numbers of the process's affinity; None asks the system.
    """
    cpus = _allowed() if allowed is None else allowed
    cores: dict[object, int] = {}
    for cpu in cpus:
        cores.setdefault(_core_of(root, cpu), cpu)
    found = sorted(cores.values())
    if len(found) == len(cpus) and not hasattr(os, "sched_getaffinity"):
        found = found[: psutil.cpu_count(logical=False) or len(found)]
    quota = cgroup_quota(root)
    return found if quota is None else found[: max(1, int(quota))]


def _allowed() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _core_of(root: Path, cpu: int) -> object:
    """What the hyper-threads of one core have in common; the CPU's own number where the system does not tell."""
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    for name in ("core_cpus_list", "thread_siblings_list"):
        if text := _read(folder / name):
            return text
    return cpu


def cgroup_quota(root: Path = _ROOT) -> float | None:
    """CPUs' worth of time that this process's control groups allow it, by version 2 or 1; None without a limit."""
    quotas = [quota for folder in _groups(root) if (quota := _quota_of(folder)) is not None]
    return min(quotas, default=None)


def _groups(root: Path) -> Iterator[Path]:
    """Folders of the process's groups, each with all above it: the strictest of them counts."""
    mount = root / "sys/fs/cgroup"
    for line in (_read(root / "proc/self/cgroup") or "0::/").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            tops = [mount, mount / "unified"]
        elif "cpu" in controllers.split(","):
            tops = [mount / controllers, mount / "cpu"]
        else:
            continue
        inner = PurePosixPath(path.lstrip("/"))
        for top in tops:
            # a container sees its own group at the top, under a path that may be its host's
            yield from (top / part for part in (inner, *inner.parents))


def _quota_of(folder: Path) -> float | None:
    if text := _read(folder / "cpu.max"):
        most, _, period = text.partition(" ")
    else:
        most, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    try:
        return int(most) / int(period or 100_000) if int(most) > 0 else None
    except (ValueError, ZeroDivisionError):
        return None  # "max", or no such file


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


@cache
def _is_busy(cores: int) -> bool:
    """Whether others leave less than these cores free; looked at once, before there is work of our own."""
    return others_use(_LOOK_S) > len(_allowed()) - cores + _BUSY_CORES


def others_use(seconds: float) -> float:
    """CPUs' worth of work that other processes do on this process's CPUs, over a short look."""
    own = psutil.Process()
    before = _busy_s(), sum(own.cpu_times()[:2]), time.monotonic()
    time.sleep(seconds)
    after = _busy_s(), sum(own.cpu_times()[:2]), time.monotonic()
    return max(0.0, (after[0] - before[0]) - (after[1] - before[1])) / (after[2] - before[2])


def _busy_s() -> float:
    """Seconds of work of the CPUs that this process may use, since the machine started."""
    times = psutil.cpu_times(percpu=True)
    here = [times[cpu] for cpu in _allowed() if cpu < len(times)]
    return float(sum(each.user + each.system + getattr(each, "nice", 0.0) for each in here))
