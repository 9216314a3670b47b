"""A llama.cpp server for one KV setting: run as a file in a process of its own, with nothing but xllamacpp.

Takes one argument, a JSON object (see ``child_arguments`` in ``open.py``), says where it listens in a line that
starts with ``LISTENING``, and serves until it is ended.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

LISTENING = "LISTENING"
# the level at which llama.cpp logs the size of its KV cache
_VERBOSITY = 4


def parameters(asked: dict[str, Any]) -> Any:
    """xllamacpp's parameters."""
    import xllamacpp as engine

    params: Any = engine.CommonParams()
    params.model.path = asked["model"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = asked["cells"]
    params.n_parallel = 1
    params.n_batch, params.n_ubatch = asked["batch"], asked["ubatch"]
    params.cache_type_k = getattr(engine.ggml_type, f"GGML_TYPE_{asked['k']}")
    params.cache_type_v = getattr(engine.ggml_type, f"GGML_TYPE_{asked['v']}")
    kind = engine.llama_flash_attn_type
    params.flash_attn_type = (
        kind.LLAMA_FLASH_ATTN_TYPE_ENABLED if asked["flash_attn"] else kind.LLAMA_FLASH_ATTN_TYPE_DISABLED
    )
    params.swa_full = asked["swa_full"]
    params.n_gpu_layers = asked["gpu_layers"]
    for pool in (params.cpuparams, params.cpuparams_batch):
        pool.n_threads = asked["threads"]
    # sizes are what was asked, never what the engine thinks would fit, and no second cache in the host's memory
    params.fit_params = False
    params.cache_ram_mib = 0
    params.ctx_shift = False
    params.ui = False
    params.verbosity = _VERBOSITY
    return params


def main() -> None:
    import xllamacpp as engine

    server: Any = engine.Server(parameters(json.loads(sys.argv[1])))
    sys.stdout.write(f"{LISTENING} {server.listening_address}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
