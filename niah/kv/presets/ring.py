"""Ring attention: the sequence is spread over several processes, and blocks of K and V travel between them."""

from __future__ import annotations

from niah.errors import ConfigError
from niah.kv.config import KVConfig, Placement
from niah.kv.preset import KVPreset


def _make(ranks: int) -> KVConfig:
    if isinstance(ranks, int) and ranks < 2:
        raise ConfigError(f"a ring needs at least 2 ranks, not {ranks}.")
    return KVConfig("ring", placement=Placement(context_parallel=ranks))


PLUGIN = KVPreset(
    "ring",
    "the sequence spread over ranks processes, 16 bit: the same answers, total bytes / ranks on each",
    _make,
    {"ranks": None},
    paper="arXiv:2310.01889",
    example="ring(2)",
)
