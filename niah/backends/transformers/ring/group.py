"""``RingGroup``: starts the processes of a ring at first use, sends them commands and reads their replies."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from niah.engines.server.process import LineProcess
from niah.errors import BackendUnavailable

if TYPE_CHECKING:
    from niah.backends.transformers.method import Setting

# timeout after which a silent rank counts as failed
COLLECTIVE_TIMEOUT_S = 600
_END_WAIT_S = 5.0
_LOST_PEER = "closed by peer"
_LOOPBACK = "lo" if sys.platform.startswith("linux") else "lo0"


def join(transport: str, meeting: Path, rank: int, ranks: int) -> None:
    """Enter the process group whose ranks meet at a file; only the loopback interface is used."""
    # otherwise both transports choose an interface themselves
    os.environ.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK)
    dist.init_process_group(
        transport,
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=COLLECTIVE_TIMEOUT_S),
    )


class RingGroup:
    """Ranks 1 and up as children of this process, which is rank 0."""

    def __init__(self, setting: Setting, ranks: int) -> None:
        self._setting, self._ranks = setting, ranks
        self._children: list[LineProcess] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.transport = "nccl" if setting.loaded.device.type == "cuda" else "gloo"

    def check(self) -> None:
        """Check what is only known once the model is loaded.

        Raises:
            BackendUnavailable: no process group can be made here, or there are fewer GPUs than ranks.
        """
        if not dist.is_available() or dist.is_initialized():
            raise BackendUnavailable("a ring needs torch.distributed, which is missing or already in use.")
        cards = torch.cuda.device_count()
        if self.transport == "nccl" and cards < self._ranks:
            raise BackendUnavailable(f"a ring of {self._ranks} ranks needs as many GPUs; this machine has {cards}.")

    def ensure(self) -> None:
        """Start the child processes unless they are running.

        Raises:
            RuntimeError: a child did not get ready; the message has what it said.
        """
        if self._children:
            return
        # the file for the rendezvous of the ranks
        self._folder = tempfile.TemporaryDirectory(prefix="niah-ring-")
        with self.failing_together():
            for rank in range(1, self._ranks):
                self._start(rank)
            # only after all have loaded the model: a rank that failed to would be waited for until the timeout
            self.replies()
            join(self.transport, self._meeting, 0, self._ranks)

    @property
    def _meeting(self) -> Path:
        if self._folder is None:
            raise RuntimeError("the ring has not been started")
        return Path(self._folder.name) / "meeting"

    def _start(self, rank: int) -> None:
        setting = self._setting
        device = setting.loaded.device.type
        told = {
            "rank": rank,
            "ranks": self._ranks,
            "transport": self.transport,
            "meeting": str(self._meeting),
            "source": setting.source,
            "elements": [setting.kv.keys.element, setting.kv.values.element],
            "threads": max(1, setting.threads // self._ranks),
            "load": {
                **(setting.load or {}),
                "device": f"cuda:{rank}" if device == "cuda" else device,
                "dtype": {torch.bfloat16: "bf16", torch.float16: "fp16"}.get(setting.loaded.dtype, "fp32"),
            },
        }
        command = [sys.executable, "-m", "niah.backends.transformers.ring.process"]
        child = LineProcess(command, f"ring-rank-{rank}", grace_s=_END_WAIT_S)
        self._children.append(child)
        child.send(told)

    def send(self, what: str, **arguments: Any) -> None:
        self.send_each(what, [arguments] * self._ranks)

    def send_each(self, what: str, arguments: Sequence[dict[str, Any]]) -> None:
        """Send one command with each rank's own arguments to ranks 1 and up."""
        for child, own in zip(self._children, arguments[1:], strict=True):
            child.send({"do": what, **own})

    def broadcast(self, seen: torch.Tensor) -> None:
        dist.broadcast(seen.to(torch.uint8), 0)

    def replies(self) -> list[Any]:
        """One value from each child.

        Raises:
            RuntimeError: a child has ended instead.
        """
        return [child.receive() for child in self._children]

    @contextmanager
    def failing_together(self) -> Iterator[None]:
        """When one rank fails, end all, and raise the message of the rank that failed first."""
        try:
            yield
        except (RuntimeError, OSError, ValueError) as err:
            said = self._failure_output()
            self.close()
            raise RuntimeError(f"the ring failed: {said or err}") from err

    def _failure_output(self) -> str:
        """Output of the rank that failed first: the others only report a lost connection."""
        found = []
        for rank, child in enumerate(self._children, 1):
            code = child.ended_within(1.0)
            if code is not None:
                lines = child.last_lines(1)
                found.append(f"rank {rank}: {lines[-1] if lines else f'exit code {code}'}")
        return min(found, key=lambda text: _LOST_PEER in text, default="")

    def close(self) -> None:
        """End all child processes; kill those that do not exit in time."""
        children, self._children = self._children, []
        for child in children:
            child.tell_to_end()
        for child in children:
            child.stop()
        if dist.is_available() and dist.is_initialized() and self._folder is not None:
            dist.destroy_process_group()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
