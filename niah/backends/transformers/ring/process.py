"""The process of one ring rank: loads the model, then runs commands from standard input until it is closed."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist

from niah.backends.transformers.attention import attention_method
from niah.backends.transformers.load import load_model
from niah.backends.transformers.options import TransformersOptions
from niah.backends.transformers.ring.group import join
from niah.backends.transformers.ring.rank import Rank
from niah.kv.config import KVConfig
from niah.kv.formats import Plain
from niah.models.shape import ModelShape


def _listen(lines: queue.Queue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    # the parent has closed the pipe or has ended; the main thread may be blocked waiting for other ranks
    os._exit(0)


def _say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _do(rank: Rank, command: dict[str, Any]) -> None:
    what = command.pop("do")
    if what == "together":
        seen = torch.empty(command.pop("seen"), dtype=torch.uint8, device=rank.loaded.device)
        dist.broadcast(seen, 0)
        rank.together(seen=seen.bool(), **command)
        return
    result = getattr(rank, what)(**command)
    if what == "bytes":
        _say(result)


def main() -> None:
    """Load the model, join the ring, and run commands until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    told = json.loads(lines.get())
    options = TransformersOptions(**told["load"])
    loaded: Any = load_model(options, SimpleNamespace(source=told["source"]))  # type: ignore[arg-type]
    torch.set_num_threads(told["threads"])
    _say("loaded")
    join(told["transport"], Path(told["meeting"]), told["rank"], told["ranks"])
    shape = ModelShape.from_config(loaded.model.config.to_dict(), name=told["source"])
    # blocks travel unquantized, and the ring excludes what drops tokens: the types are all that there is to a setting
    kv = KVConfig("ring", keys=Plain(told["elements"][0]), values=Plain(told["elements"][1]))
    rank = Rank(loaded, kv, shape, told["rank"], told["ranks"])
    with torch.inference_mode(), attention_method(loaded.model, rank.attend):
        while True:
            _do(rank, json.loads(lines.get()))


if __name__ == "__main__":
    main()
