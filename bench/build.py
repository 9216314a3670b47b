"""Building prompts: seconds and peak memory for a usual grid and for a million tokens.

python bench/build.py
"""

from __future__ import annotations

import time

from common import peak_mib

from niah.backends.transformers.plugin import PLUGIN
from niah.config import GridConfig, Named, RunConfig
from niah.grid import parse_depths, parse_lengths
from niah.runner.prompt_builder import Group, PromptBuilder

INFO = PLUGIN.describe(PLUGIN.options(), "smollm2")


def build(name: str, lengths: str, depths: str, task: str) -> None:
    sizes = parse_lengths(lengths)
    config = RunConfig(task=Named(name=task), grid=GridConfig(lengths=lengths, depths=depths))
    shop = PromptBuilder(config, INFO, max(sizes))
    started = time.perf_counter()
    shop.segmented(0)
    tokenized_s = time.perf_counter() - started
    spans, prompts = [], 0
    for length in sizes:
        for index, layout in enumerate(shop.layouts(parse_depths(depths))):
            started = time.perf_counter()
            prompts += len(shop.prompts(Group(length, 0, index, layout)))
            spans.append(time.perf_counter() - started)
    print(
        f"{name:<34} text+tokens {tokenized_s:6.2f} s   {prompts} prompts {sum(spans):6.2f} s"
        f"   last context {spans[-1]:5.2f} s   peak {peak_mib():,.0f} MiB",
        flush=True,
    )


def main() -> None:
    print("the haystack is generated and tokenised once; every further context is assembled from slices")
    build("4k..128k x 11, multikey", "4k..128k", "11", "multikey")
    build("4k..128k x 11, single", "4k..128k", "11", "single")
    build("1m x 35, multikey", "1m", "35", "multikey")
    build("1m x 35, single", "1m", "35", "single")


if __name__ == "__main__":
    main()
